"""Checks at the creation of every job: limits, the queue's order, and that the run has no other job."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.contract.retraining import RuleWorld
from tests.contract.world import LEDGER, request_rules_with
from trainmaster.orchestrator.core.admission.candidates import candidates_of, quota_class
from trainmaster.orchestrator.core.admission.queue import Place, limits_of
from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL, WAITING_PREFIX
from trainmaster.orchestrator.core.policy.admission import Admission, Caps, Limit
from trainmaster.orchestrator.core.policy.registry import Registry, RegistryMode
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.states import OVER, RunState
from trainmaster.orchestrator.flows.lifecycle.slots import place_of
from trainmaster.orchestrator.ports.objects import Listed

LIMITS = (
    Limit(jobs=2, per_model=True),
    Limit(jobs=4, labels={"team": "blue"}),
    Limit(jobs=6, model="model-3*"),
    Limit(jobs=30),
)
REGISTRY = Registry(mode=RegistryMode.CHAMPIONS)
LIMITED = request_rules_with(admission=Admission(limits=LIMITS), registry=REGISTRY)
RUNS_PER_HOUR = 330
COST_PER_DAY = Decimal(900)
"""Room for 20 runs at their maximum, 43.2 each, far fewer than a simulation of 1,000 events starts."""
CAPS = Caps(runs_per_hour=RUNS_PER_HOUR, cost_per_day=COST_PER_DAY)
CAPPED = request_rules_with(admission=Admission(limits=LIMITS, caps=CAPS), registry=REGISTRY)
VISIBLE_AFTER = timedelta(seconds=145)
"""How old a delivery's view of the queue may be: the function's timeout, and a request in flight."""


class SubmissionChecker:
    """Checks the world just before a job is created. Use `strict` unless processes continue after their leases."""

    def __init__(self, world: RuleWorld, *, strict: bool) -> None:
        self._world = world
        self._strict = strict

    def violations_of(self, submission: Submission, going: Sequence[Job]) -> list[str]:
        """The guarantees that this job breaks, given the jobs that are active."""
        if not self._strict:
            return []
        return [*self._limits(submission, going), *self._overtaking(submission), *self._ended(submission)]

    def still_running(self, run_id: str) -> list[str]:
        """Why a run is still active although an order to cancel it was acknowledged."""
        record = self._world.record(run_id)
        if record.ended:
            return []
        if record.job is None:
            return [f"{run_id} is {record.state}, although an order cancelled it"]
        job = self._world.jobs.read(record.job.name)
        is_cancelled = job.state in OVER or job.name in self._world.jobs.asked_to_cancel
        return [] if is_cancelled else [f"{job.name} was not cancelled"]

    def _ended(self, submission: Submission) -> Iterator[str]:
        record = self._world.record(submission.run_id)
        if record.ended or record.cancel_requested_at is not None:
            yield f"{submission.run_id} gets a job although it has ended or was cancelled"

    def _limits(self, submission: Submission, going: Sequence[Job]) -> Iterator[str]:
        if any(job.labels[RUN_LABEL] == submission.run_id for job in going):
            yield f"{submission.run_id} gets a second job while the first is active"
        body: Any = submission.body
        own_limits = {limit.name: limit.slots for limit in self._of(body["labels"])}
        counts = dict.fromkeys(own_limits, 1)
        for job in going:
            for limit in self._of(job.labels):
                if limit.name in counts:
                    counts[limit.name] += 1
        yield from (
            f"{submission.run_id} exceeds the limit {name}: {count} jobs at once"
            for name, count in counts.items()
            if count > own_limits[name]
        )

    def _of(self, labels: Any) -> Any:
        return limits_of(self._world.request_rules.policy, labels[MODEL_LABEL], labels)

    def _overtaking(self, submission: Submission) -> Iterator[str]:
        """No run ahead in the queue has waited for the same quota for long enough to be seen."""
        listed = list(self._world.objects.listing(LEDGER, WAITING_PREFIX))
        if not listed:
            return
        record = self._world.record(submission.run_id)
        services = self._world.services()
        candidates = candidates_of(record)
        own, wanted = place_of(services, record), quota_class(candidates[record.submission.candidate])
        for place in services.queue.places()[0]:
            if place.quota_class == wanted and place.order < own.order and self._has_waited(place, listed):
                yield f"{own.run_id} overtakes {place.run_id}, which also waits for {wanted}"

    def _has_waited(self, place: Place, listed: Sequence[Listed]) -> bool:
        """Whether the run waits for quota, also by its record, and has done so for longer than VISIBLE_AFTER."""
        now = self._world.clock.now()
        old = [each for each in listed if each.name.endswith(f"-{place.run_id}")]
        if place.blocked_on_limit is not None or all(now - each.created_at <= VISIBLE_AFTER for each in old):
            return False
        held = self._world.ledger.find(place.run_id)
        if held is None or held.record.state is not RunState.WAITING:
            return False
        # A process that submits the run holds a lease until it has recorded the result.
        lease = held.record.submission.lease
        return lease is None or lease.expires_at <= now
