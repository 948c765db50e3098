"""A recorded run gets its job, effectively once: its candidates are tried in order until one is accepted.

The order of writes, and what a crash between two of them leaves:

    record    reserved or waiting, with a lease, and the candidate that is submitted next: until the lease expires
              no other attempt submits
    job       exists, unrecorded: the attempt that takes over the lease finds it by its label
    notices   of the states entered; published again by the attempt that finds the job
    record    submitted: later attempts find the job's name
    status    visible to the user; the event is acknowledged after this
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core import errors
from trainmaster.orchestrator.core.admission.candidates import (
    Candidate,
    candidates_of,
    current_candidate,
    deployment_class,
    is_rate_limit,
    quota_class,
)
from trainmaster.orchestrator.core.admission.queue import Place, QueuePass, SlotSet
from trainmaster.orchestrator.core.admission.waiting import (
    WAIT_FIRST,
    attempts_of,
    back_off,
    reason_to_give_up,
    short_pause,
    with_rate_limit,
    with_refused_candidate,
    with_try,
    with_unanswered_submission,
)
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.moves import with_lease_given_back
from trainmaster.orchestrator.core.runs.record import RunRecord, Waiting
from trainmaster.orchestrator.flows.lifecycle import transitions
from trainmaster.orchestrator.flows.lifecycle.pools import pool_obstacle
from trainmaster.orchestrator.flows.lifecycle.slots import (
    full_limit,
    limits_for,
    place_of,
    start_pass,
    take_slots,
)
from trainmaster.orchestrator.flows.services import SUBMIT_NEEDS, FlowResult, Services
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.ledger import Held


def submit(
    services: Services, held: Held, queue_pass: QueuePass | None = None, *, reclaim: bool = False
) -> FlowResult:
    """Submit the run, starting at the recorded candidate, until one is accepted; else the run waits.

    It overtakes no run that waits for the same. `queue_pass` is what is known about the queue; None: it is listed.

    Raises:
        LeaseTooShort, SubmissionUnknown, RecordMoved: a later delivery must try again. Unless a job may exist, the lease
            is given back, so that it can do so at once.
    """
    attempt = None
    try:
        queue_pass = start_pass(services) if queue_pass is None else queue_pass
        attempt = _Attempt(services=services, held=held, queue_pass=queue_pass, reclaim=reclaim)
        return attempt.try_candidates()
    except errors.TrainmasterError:
        if attempt is None or not attempt.may_have_job:
            give_lease_back(services, held if attempt is None else attempt.held)
        raise


def give_lease_back(services: Services, held: Held) -> None:
    """End the lease of an attempt that has submitted nothing; without this write, it lasts until it expires."""
    with suppress(errors.TrainmasterError):
        services.ledger.replace(held, with_lease_given_back(held.record, services.clock.now()))


def wait_for_repair(
    services: Services, held: Held, queue_pass: QueuePass | None, refusal: errors.DeploymentRefused
) -> FlowResult:
    """The run, whose job this deployment may not even look for, waits without a submission."""
    queue_pass = start_pass(services) if queue_pass is None else queue_pass
    attempt = _Attempt(services=services, held=held, queue_pass=queue_pass, reclaim=False)
    return attempt.wait_for_repair(current_candidate(held.record), refusal)


@dataclass(kw_only=True)
class _Attempt:
    """One attempt to submit: goes through the candidates while it holds the lease.

    `reason`: why the last candidate had no room. `classes`: the quota classes of the submitted candidates.
    `may_have_job`: the service may have accepted a job.
    """

    services: Services
    held: Held
    queue_pass: QueuePass
    reclaim: bool
    reason: str = ""
    refused: errors.SubmissionRefused | None = None
    may_have_job: bool = False
    slots: tuple[str, ...] | None = None
    candidates: Sequence[Candidate] = field(init=False)
    place: Place = field(init=False)
    classes: set[str] = field(default_factory=set)

    def try_candidates(self) -> FlowResult:
        self.candidates = candidates_of(self.held.record)
        first = min(self.held.record.submission.candidate, len(self.candidates) - 1)
        self.place = place_of(self.services, self.held.record)
        for candidate in self.candidates[first:]:
            result = self._try_candidate(candidate)
            if result is not None:
                return result
        if not self.classes:
            return self._wait(first, self.reason, is_due=True)
        if self.refused is not None and not self.reason and first == 0:
            why = f"Vertex AI refused the job: {self.refused.reason}"
            return self._fail(Failure(message=why, code=self.refused.code))
        return self._back_off()

    def _try_candidate(self, candidate: Candidate) -> FlowResult | None:
        """The result with this candidate; None: try the next one."""
        held_up = self._wait_if_held_up(candidate)
        if held_up is not None:
            return held_up
        pool_id = candidate.spec.persistent_resource
        obstacle = pool_obstacle(self.services, candidate, pool_id) if pool_id else ""
        if obstacle and candidate.number < len(self.candidates) - 1:
            self._note(with_try, candidate, obstacle)
            return None
        wanted = quota_class(candidate)
        # A class that refused one candidate may accept another: a smaller machine, for example.
        lacks = deployment_class(candidate.region, candidate.spec.kind)
        blockers = (self.queue_pass.blocker(self.place, one) for one in (wanted, lacks))
        others = None if wanted in self.classes else next(filter(None, blockers), None)
        if others is not None:
            self.reason = others
            self._note(with_try, candidate, others)
            return None
        if self.slots is None:
            services, run_id, team = self.services, self.place.run_id, self.held.record.source.team
            limits = limits_for(services, self.candidates[0].spec, team)
            self.slots, full = take_slots(services, run_id, limits, self.queue_pass, reclaim=self.reclaim)
            if full is not None:
                return self._wait_for_limit(candidate, full)
        if self.classes and _lease_left(self.services, self.held.record) < SUBMIT_NEEDS:
            return self._wait(candidate.number, "the function ran out of time")
        self.held = _record_candidate(self.services, self.held, candidate, self.slots or ())
        return self._request_job(candidate, wanted)

    def _wait_if_held_up(self, candidate: Candidate) -> FlowResult | None:
        """The run waits without a submission, whatever its next candidates are."""
        if self.queue_pass.is_paused(candidate.region):
            until = self.queue_pass.paused_until[candidate.region]
            return self._wait(candidate.number, f"too many requests to {candidate.region}", not_before=until)
        if self.classes:
            return None
        lacks = deployment_class(candidate.region, candidate.spec.kind)
        if self.queue_pass.blocker(self.place, lacks) is not None:
            return self._line_up(candidate, lacks)
        first = self.queue_pass.ahead_at_limit(self.place)
        if first is None or first.blocked_on_limit is None:
            return None
        reason = f"{first.run_id} is ahead of it, waiting under the same limit"
        return self._wait(candidate.number, reason, limit=first.blocked_on_limit)

    def _line_up(self, candidate: Candidate, lacks: str) -> FlowResult:
        """While Vertex AI refuses every job of the deployment, one run asks, and the others wait behind it."""
        reason = self.queue_pass.blocker(self.place, lacks) or ""
        first = self.queue_pass.ahead(self.place, lacks)
        with suppress(errors.RecordDamaged):
            held = self.services.ledger.find(first.run_id) if first is not None else None
            waiting = held.record.admission.waiting if held is not None else None
            reason = waiting.reason if waiting is not None else reason
        # Its seven days begin now, as those of the first.
        self._note(with_refused_candidate, candidate, reason)
        return self._wait(candidate.number, reason, lacks=lacks)

    def _request_job(self, candidate: Candidate, wanted: str) -> FlowResult | None:
        """The result of the submission; None: try the next candidate."""
        self.classes.add(wanted)
        try:
            result = self._submit_candidate(candidate)
        except errors.SubmissionRefused as refusal:
            self.refused = refusal
            self._mark_repaired()
            self._note(with_refused_candidate, candidate, str(refusal))
            return None
        except errors.SubmissionUnknown as unknown:
            self._note(with_unanswered_submission, candidate, str(unknown))
            with suppress(errors.TrainmasterError):  # without this write, only the count misses this attempt
                self.services.ledger.replace(self.held, self.held.record)
            raise
        except errors.DeploymentRefused as refusal:
            if len(self.classes) == 1 or isinstance(refusal, errors.ActAsDenied):
                return self.wait_for_repair(candidate, refusal)
            # Another candidate was not refused: the run waits for room for that one.
            self.queue_pass.close(refusal.lacks, refusal.reason)
            self.reason = self.reason or refusal.reason
            self._note(with_refused_candidate, candidate, refusal.reason)
            return None
        except errors.SubmissionDeferred as deferral:
            if is_rate_limit(deferral.code, deferral.reason):
                return self._pause_region(candidate, deferral)
            self._mark_repaired()
            self.queue_pass.close(wanted)
            self.reason = deferral.reason
            self._note(with_refused_candidate, candidate, deferral.reason)
            return None
        self.queue_pass.mark_admitted(self.held.record.run_id, wanted)
        self._mark_repaired()
        return result

    def _submit_candidate(self, candidate: Candidate) -> FlowResult:
        """The result of the accepted submission.

        Raises:
            LeaseTooShort, SubmissionRefused, DeploymentRefused, SubmissionDeferred: this candidate has no job.
            SubmissionUnknown: it may have one.
        """
        services, record = self.services, self.held.record
        # Importing the client and getting credentials have no time limit: do both before checking the lease.
        services.prepare_jobs(candidate.region)
        left = _lease_left(services, record)
        if left < SUBMIT_NEEDS:
            raise errors.LeaseTooShort(record.run_id, left.total_seconds())
        target = replace(services.target, region=candidate.region)
        self.may_have_job = True
        try:
            job = services.jobs.submit(submission_of(record.run_id, candidate.spec, target))
        except (errors.SubmissionRefused, errors.DeploymentRefused, errors.SubmissionDeferred):
            self.may_have_job = False
            raise
        except errors.SubmissionUnknown:
            found = None
            # The lease must be kept, and the attempt counted: the job may exist.
            with suppress(errors.TrainmasterError):
                found = transitions.job_of(services, record)
            if found is None:
                # The service may show it a moment later: until then the lease keeps other attempts away.
                raise
            what = "the job was created, although the response was lost"
            return transitions.record_submission(services, self.held, found, what)
        return transitions.record_submission(services, self.held, job, "the job was submitted")

    def _mark_repaired(self) -> None:
        """What the deployment lacked is there: runs that wait for the same need not wait for their pause."""
        waiting = self.held.record.admission.waiting
        if waiting is not None and waiting.lacks is not None:
            self.queue_pass.mark_admitted(self.held.record.run_id, waiting.lacks)

    def _note(
        self,
        note: Callable[[RunRecord, Candidate, str, datetime], RunRecord],
        candidate: Candidate,
        what: str,
    ) -> None:
        """Note the result with a candidate; the next write records it."""
        record = note(self.held.record, candidate, what, self.services.clock.now())
        self.held = replace(self.held, record=record)

    def _pause_region(self, candidate: Candidate, deferral: errors.SubmissionDeferred) -> FlowResult:
        """The service asks for fewer requests: try the same candidate again after a pause of the whole region."""
        now = self.services.clock.now()
        until = now + short_pause(self.held.record.run_id, now)
        self.queue_pass.pause(candidate.region, until)
        self.held = replace(self.held, record=with_rate_limit(self.held.record, now))
        why = reason_to_give_up(self.held.record, now)
        if why is not None:
            return self._fail(Failure(message=f"{why}: {deferral.reason}", code=deferral.code))
        return self._wait(candidate.number, deferral.reason, not_before=until, rate_limited=True)

    def wait_for_repair(self, candidate: Candidate, refusal: errors.DeploymentRefused) -> FlowResult:
        """The run leaves the line of its machines, so that runs that do not lack the same need not wait behind it."""
        self._note(with_refused_candidate, candidate, refusal.reason)
        now, record = self.services.clock.now(), self.held.record
        self.queue_pass.mark_gone(record.run_id)
        self.queue_pass.close(refusal.lacks, refusal.reason)
        why = reason_to_give_up(record, now, refusal.given_up)
        if why is not None:
            return self._fail(Failure(message=f"{why}: {refusal.reason}", code=refusal.code))
        attempts = attempts_of(record) + 1
        # One run asks for all: at every tick, so that they start with the first one after the repair.
        stops_all = refusal.lacks == deployment_class(candidate.region, candidate.spec.kind)
        is_of_account = isinstance(refusal, errors.ActAsDenied)
        return self._wait(
            candidate.number,
            refusal.reason,
            not_before=now + (WAIT_FIRST if stops_all else back_off(attempts)),
            attempts=attempts,
            lacks=refusal.lacks,
            event=LogEvent.RUN_WAITS if is_of_account else LogEvent.DEPLOYMENT_REFUSED,
        )

    def _wait_for_limit(self, candidate: Candidate, limit: SlotSet) -> FlowResult:
        self.queue_pass.mark_full(limit.name)
        reason = f"the limit {limit.text} is reached: {limit.slots} running"
        waits = self._wait(candidate.number, reason, limit=limit.name)
        # Before it was recorded as waiting, another pass may have kept a slot for it that was given back.
        full = full_limit(self.services, self.place.run_id, (limit,), None, reclaim=False)
        return replace(waits, is_due=full is None)

    def _back_off(self) -> FlowResult:
        now, record = self.services.clock.now(), self.held.record
        reason = self.reason or str(self.refused)
        why = reason_to_give_up(record, now)
        if why is not None:
            return self._fail(Failure(message=f"{why}: {reason}"))
        attempts = attempts_of(record) + 1
        return self._wait(0, reason, not_before=now + back_off(attempts), attempts=attempts)

    def _fail(self, problem: Failure) -> FlowResult:
        self.queue_pass.mark_gone(self.held.record.run_id)
        return transitions.fail_run(self.services, self.held, problem)

    def _wait(
        self,
        candidate: int,
        reason: str,
        *,
        not_before: datetime | None = None,
        rate_limited: bool = False,
        limit: str | None = None,
        lacks: str | None = None,
        is_due: bool = False,
        attempts: int | None = None,
        event: LogEvent = LogEvent.RUN_WAITS,
    ) -> FlowResult:
        """The candidate stays the run's next one; by default it is due at once."""
        waiting = Waiting(
            reason=reason,
            attempts=attempts_of(self.held.record) if attempts is None else attempts,
            not_before=not_before or self.services.clock.now(),
            rate_limited=rate_limited,
            limit=limit,
            lacks=lacks,
        )
        return transitions.keep_waiting(
            self.services, self.held, waiting, candidate, slots=self.slots or (), is_due=is_due, event=event
        )


def _record_candidate(services: Services, held: Held, candidate: Candidate, slots: tuple[str, ...]) -> Held:
    """The record that names the candidate and the slots, before anything is submitted.

    The job may have to be found later, and an attempt that has lost the run meanwhile must not submit it.
    """
    record = held.record
    admission = replace(record.admission, slots=slots)
    submission = replace(record.submission, candidate=candidate.number)
    if (admission, submission) == (record.admission, record.submission):
        return held
    record = replace(record, admission=admission, submission=submission)
    record = replace(record, updated_at=services.clock.now(), attempt=services.attempt)
    return services.ledger.replace(held, record)


def _lease_left(services: Services, record: RunRecord) -> timedelta:
    now, lease = services.clock.now(), record.submission.lease
    return (lease.expires_at if lease else now) - now
