"""What must be true whenever a job is created: limits are kept, nobody is overtaken, and a run has no other job."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from tests.contract.retraining import RuleWorld
from tests.contract.world import LEDGER, request_rules_with
from trainmaster.orchestrator.core.admission.queue import Place, limits_of
from trainmaster.orchestrator.core.admission.quota import quota_class
from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL, WAITING_PREFIX
from trainmaster.orchestrator.core.policy.admission import Admission, Caps, Limit
from trainmaster.orchestrator.core.requests.candidates import candidates_of
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.states import OVER, RunState
from trainmaster.orchestrator.flows.queue import place_of
from trainmaster.orchestrator.ports.objects import Listed

LIMITS = (
    Limit(jobs=2, per_model=True),
    Limit(jobs=4, labels={"team": "blue"}),
    Limit(jobs=6, model="model-3*"),
    Limit(jobs=30),
)
LIMITED = request_rules_with(admission=Admission(limits=LIMITS))
RUNS_PER_HOUR = 330
CAPPED = request_rules_with(admission=Admission(limits=LIMITS, caps=Caps(runs_per_hour=RUNS_PER_HOUR)))
SEEN_AFTER = timedelta(seconds=145)
"""A delivery may have looked at the queue so long ago: its function's timeout, and a request still on its way."""


class Watch:
    """Looks at the world when a job is about to be created. Not `strict`: processes go on after their leases."""

    def __init__(self, world: RuleWorld, *, strict: bool) -> None:
        self._world = world
        self._strict = strict

    def broken_by(self, submission: Submission, going: Sequence[Job]) -> list[str]:
        """The promises that this job breaks, beside those that go on."""
        if not self._strict:
            return []
        return [*self._limits(submission, going), *self._overtaken(submission), *self._unwanted(submission)]

    def goes_on(self, run_id: str) -> list[str]:
        """What keeps a run going of whose end an order was acknowledged."""
        record = self._world.record(run_id)
        if record.ended:
            return []
        if record.job is None:
            return [f"{run_id} is {record.state}, though it was ordered to end"]
        job = self._world.jobs.read(record.job.name)
        return [] if job.state in OVER else [f"{job.name} was not asked to end"]

    def _unwanted(self, submission: Submission) -> Iterator[str]:
        record = self._world.record(submission.run_id)
        if record.ended or record.cancel_requested_at is not None:
            yield f"{submission.run_id} is given a job, though it has ended or is to end"

    def _limits(self, submission: Submission, going: Sequence[Job]) -> Iterator[str]:
        if any(job.labels[RUN_LABEL] == submission.run_id for job in going):
            yield f"{submission.run_id} was given a second job while the first one went on"
        body: Any = submission.body
        own = {limit.name: limit.slots for limit in self._of(body["labels"])}
        counts = dict.fromkeys(own, 1)
        for job in going:
            for limit in self._of(job.labels):
                if limit.name in counts:
                    counts[limit.name] += 1
        yield from (
            f"{submission.run_id} passes the limit {name}: {count} jobs at once"
            for name, count in counts.items()
            if count > own[name]
        )

    def _of(self, labels: Any) -> Any:
        return limits_of(self._world.request_rules.policy, labels[MODEL_LABEL], labels)

    def _overtaken(self, submission: Submission) -> Iterator[str]:
        """Nobody who waits for the same, and goes first, is on the queue for as long as anybody may have known."""
        listed = list(self._world.objects.listing(LEDGER, WAITING_PREFIX))
        if not listed:
            return
        record = self._world.record(submission.run_id)
        services = self._world.services()
        candidates = candidates_of(record)
        own, wanted = place_of(services, record), quota_class(candidates[record.submission.candidate])
        for place in services.queue.places():
            if place.quota_class == wanted and place.order < own.order and self._waits(place, listed):
                yield f"{own.run_id} overtakes {place.run_id}, which waits for {wanted} too"

    def _waits(self, place: Place, listed: Sequence[Listed]) -> bool:
        """Whether it waits for room, by its record too, and has done so for a while."""
        now = self._world.clock.now()
        old = [each for each in listed if each.name.endswith(f"-{place.run_id}")]
        if place.blocked_on_limit is not None or all(now - each.created_at <= SEEN_AFTER for each in old):
            return False
        held = self._world.ledger.find(place.run_id)
        if held is None or held.record.state is not RunState.WAITING:
            return False
        lease = (
            held.record.submission.lease
        )  # with one, it is having its turn, or had it and has not told yet
        return lease is None or lease.expires_at <= now
