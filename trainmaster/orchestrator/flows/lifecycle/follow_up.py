"""A follow-up job: a small job of another account that a step submits after the run's end, effectively once.

    record    claims the submission by a lease, and names what the job is given
    job       exists, unrecorded: the attempt that takes over the expired lease finds it by its labels
    record    names the job; if another attempt was faster, its job stays, and the second one is cancelled
    record    has the numbers that the job left, or why it left no numbers; and what it cost

An attempt that lost its lease while it was suspended may submit a second job. It reads the record afterwards; the one
that took over writes the record and then lists the jobs, and again when its job has ended.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

from trainmaster.orchestrator.core.admission.actual_cost import with_evaluation_cost
from trainmaster.orchestrator.core.errors import (
    JobNotFound,
    PolicyInvalid,
    SubmissionDeferred,
    SubmissionRefused,
)
from trainmaster.orchestrator.core.job_names import JobKind, location_region, same_job
from trainmaster.orchestrator.core.names import STEP_LABEL
from trainmaster.orchestrator.core.requests.evaluation import evaluation_output_uri
from trainmaster.orchestrator.core.requests.spec import START_WITHIN_S, JobSpec
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.end import EVALUATION, SMOKE, Completion, Cost, FollowUp
from trainmaster.orchestrator.core.runs.job import Job, RecordedJob
from trainmaster.orchestrator.core.runs.moves import recorded_job
from trainmaster.orchestrator.core.runs.sender import Sender
from trainmaster.orchestrator.core.runs.states import END_OF, OVER, RunState
from trainmaster.orchestrator.flows.lifecycle import status
from trainmaster.orchestrator.flows.lifecycle.finish import End, update_completion
from trainmaster.orchestrator.flows.lifecycle.slots import job_cost, settle_cost
from trainmaster.orchestrator.flows.services import SUBMIT_NEEDS, FlowResult, Services
from trainmaster.orchestrator.stores.ledger import Held

GIVE_UP_AFTER = timedelta(hours=24)
"""How long a submission is repeated for which the service has no room."""
VANISHED_AGE = timedelta(minutes=10)
"""A job that is missing this long after its submission was deleted, rather than not visible yet."""

Scores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class FollowUpJob:
    """The job of the step `name`, which is also the field of the record's completion about it.

    `spec` is what it costs and how long it may run. `scores` reads what it has left, or says what is wrong with that.
    """

    end: End
    name: str
    spec: JobSpec
    submission: Callable[[FollowUp], Submission]
    scores: Callable[[FollowUp], Scores | str]

    @property
    def known(self) -> FollowUp:
        return cast("FollowUp", getattr(self.end.record.completion, self.name))

    def advance(self) -> str | None:
        """What the job that is on record still waits for; None: it is over. Safe to repeat."""
        if self.known.is_over:
            settle_cost(self.end.services, self.end.record)
            status.write_row(self.end.services, self.end.held)
            return None
        return self._submit() if self.known.job is None else self._look(self.known.job)

    def _submit(self) -> str | None:
        services, now = self.end.services, self.end.services.clock.now()
        is_taken_over = self.known.attempt != services.attempt
        if is_taken_over:
            if self.known.lease_until > now:
                return "another attempt submits its job"
            before, until = self.known, now + services.lease
            claimed = replace(before, attempt=services.attempt, lease_until=until)
            self._update(lambda found: claimed if found == before else None)
            if self.known.attempt != services.attempt:
                return "another attempt submits its job"
        wanted = self.submission(self.known)
        found = self._list_jobs(wanted) if is_taken_over else []
        if not found and self.known.cancelled:
            return self._fail(self.known.cancelled)
        job = found[0] if found else self._request_job(wanted)
        if not isinstance(job, Job):
            return job
        self.end.services.ledger.mark_job(job.name)
        self._update(lambda follow_up: None if follow_up.job else replace(follow_up, job=recorded_job(job)))
        self._cancel_others(self._list_jobs(wanted) if is_taken_over else [job])
        return f"{job.name} was submitted"

    def _cancel_others(self, jobs: Sequence[Job]) -> None:
        """Cancel those of the step's jobs that are active and not the one on record, if there is one."""
        own = self.known.job
        for other in jobs:
            if own is not None and not same_job(own.name, other.name) and other.state not in OVER:
                self.end.services.jobs.cancel(other.name)

    def _request_job(self, wanted: Submission) -> Job | str | None:
        """The new job; or why it does not exist yet, or never will.

        Raises:
            SubmissionUnknown: there may be a job. The lease keeps other attempts away until the service shows it.
        """
        services = self.end.services
        services.prepare_jobs(location_region(wanted.parent))
        if self.known.lease_until - services.clock.now() < SUBMIT_NEEDS:
            return "too little of the lease is left to submit its job"
        try:
            return services.jobs.submit(wanted)
        except SubmissionRefused as refused:
            return self._fail(f"Vertex AI refused its job: {refused.reason}")
        except SubmissionDeferred as deferred:
            now = services.clock.now()
            if now - self.known.began_at > GIVE_UP_AFTER:
                return self._fail(f"Vertex AI had no room for its job: {deferred.reason}")
            self._update(
                lambda found: replace(found, lease_until=now) if found.attempt == services.attempt else None
            )
            return f"its job is not submitted yet: {deferred.reason}"

    def _list_jobs(self, wanted: Submission) -> list[Job]:
        """The jobs with the run's and the step's labels, its name and directory, oldest first: any account may write labels."""
        region = location_region(wanted.parent)
        jobs = self.end.services.jobs.of_run(self.end.record.run_id, JobKind.CUSTOM, (region,))
        shape = self.name, wanted.body["displayName"], self.known.output_uri
        return [
            job for job in jobs if (job.labels.get(STEP_LABEL), job.display_name, job.output_uri) == shape
        ]

    def _look(self, own: RecordedJob) -> str | None:
        services, now = self.end.services, self.end.services.clock.now()
        age = now - (own.create_time or self.known.began_at)
        try:
            job = self.end.find_job(own)
        except JobNotFound:
            is_new = age < VANISHED_AGE
            return f"{own.name} is not visible yet" if is_new else self._fail(f"{own.name} no longer exists")
        if job.state in END_OF:
            return self._close(job)
        late = timedelta(seconds=START_WITHIN_S + (self.spec.scheduling.timeout_s or 0)) <= age
        why = self.known.cancelled or ("its job did not end in time" if late else None)
        self._update(
            lambda found: (
                replace(found, job=recorded_job(job), cancelled=found.cancelled or why)
                if not found.is_over
                else None
            )
        )
        if why is not None:  # in each pass: a request to cancel guarantees nothing
            services.jobs.cancel(job.name)
        return f"{job.name} is active: {job.state}"

    def _close(self, job: Job) -> str | None:
        """Record what the ended job left, and what it cost. If the submission was taken over, look for a second job."""
        if self.known.lease_until > self.known.began_at + self.end.services.lease:
            self._cancel_others(self._list_jobs(self.submission(self.known)))
        said = job.error.message if job.error else f"its job ended as {job.state}"
        is_well = END_OF[job.state] is RunState.SUCCEEDED and self.known.cancelled is None
        found = self.scores(self.known) if is_well else self.known.cancelled or said
        cost = None
        with suppress(PolicyInvalid):
            cost = job_cost(self.end.services, self.end.record, job, self.spec)
        outcome = {"failure": found} if isinstance(found, str) else {"scores": found}
        over = replace(self.known, job=recorded_job(job), cost=cost.total if cost else None, **outcome)
        self._update(lambda known: None if known.is_over else over, cost)
        return self.advance()

    def _fail(self, why: str) -> str | None:
        """Record the failure, unless another attempt has changed what is on record."""
        before = self.known
        self._update(lambda found: replace(found, failure=why) if found == before else None)
        return self.advance()

    def _update(self, change: Callable[[FollowUp], FollowUp | None], cost: Cost | None = None) -> None:
        def change_known(completion: Completion) -> Completion:
            before = getattr(completion, self.name)
            after = change(before)
            if after is None or after == before:
                return completion
            whole = (
                with_evaluation_cost(completion.cost, cost) if completion.cost and cost else completion.cost
            )
            return with_follow_up(replace(completion, cost=whole), self.name, after)

        self.end.held = update_completion(self.end.services, self.end.held, change_known)


def begin(
    services: Services,
    held: Held,
    name: str,
    inputs: Mapping[str, str],
    output_uri: str,
    *,
    failure: str | None = None,
) -> Held:
    """Claim the follow-up job on record, unless another attempt has; or record why there can be none."""
    now = services.clock.now()
    claimed = FollowUp(
        attempt=services.attempt,
        lease_until=now + services.lease,
        began_at=now,
        inputs=inputs,
        output_uri=output_uri,
        failure=failure,
    )

    def with_new(completion: Completion) -> Completion:
        known = getattr(completion, name)
        return completion if known is not None else with_follow_up(completion, name, claimed)

    return update_completion(services, held, with_new)


def with_follow_up(completion: Completion, name: str, follow_up: FollowUp) -> Completion:
    """The completion with the job of the step `name`."""
    changed: dict[str, FollowUp] = {name: follow_up}
    return replace(completion, **changed)  # type: ignore[arg-type]  # the step's field, by its name


def cancel_follow_ups(services: Services, held: Held, by: Sender | None) -> FlowResult | None:
    """Cancel the jobs that follow the ended run; the one that scores its model also before it exists.

    Safe to repeat; None: all are over.
    """
    record, why = held.record, f"{by.name if by else 'an order'} cancelled it"
    if record.awaits_evaluation:
        bucket, team = services.buckets.champions, record.source.team
        output_uri = evaluation_output_uri(bucket, team, record.model_name or "", record.run_id)
        held = begin(services, held, EVALUATION, {}, output_uri, failure=why)

    def with_cancel(completion: Completion) -> Completion:
        for name in (EVALUATION, SMOKE):
            found: FollowUp | None = getattr(completion, name)
            if found is not None and not found.is_over and not found.cancelled:
                completion = with_follow_up(completion, name, replace(found, cancelled=why))
        return completion

    cancelled = update_completion(services, held, with_cancel).record
    for job in cancelled.follow_up_jobs:
        services.jobs.cancel(job.name)
    if cancelled.completion == record.completion and not cancelled.follow_up_jobs:
        return None
    return FlowResult(message="the jobs that follow it were asked to cancel", run_id=record.run_id)
