"""A run's place in the queue, and its slots under the policy's limits.

Limits are exact: a run under a limit submits only while it holds one of its slots. The order of writes, and what a
crash between two of them leaves:

    slot      taken but not recorded: the attempt that takes over the run finds it by its holder and takes it again
    record    names the slot as it was written; then the job may be submitted
    …
    record    the run has ended, or waits: it no longer holds anything
    slot      given back; until then, an attempt that finds no free slot reads the holder's record and takes it over

A slot is given back only in the version written for that job, and only by the attempt that recorded its release.
This is safe however late it happens: if the run's next job has taken the slot again, its version has changed.
"""

import hashlib
from collections.abc import Sequence

from trainmaster.orchestrator.core.admission.actual_cost import cost_of, final_cost
from trainmaster.orchestrator.core.admission.candidates import candidates_of, quota_class
from trainmaster.orchestrator.core.admission.listed import Slot
from trainmaster.orchestrator.core.admission.queue import Place, QueuePass, SlotSet, limits_of
from trainmaster.orchestrator.core.errors import GenerationMoved, RecordDamaged
from trainmaster.orchestrator.core.events.envelope import DELIVERED_WITHIN
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import held_slot_parts
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.end import Cost
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.moves import live_lease
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import END_OF, RunState
from trainmaster.orchestrator.flows.services import Services

RACES_MAX = 20
"""How many races for a slot may be lost: each time a competitor got a slot, and all start at different ones."""
ORPHAN_AGE = DELIVERED_WITHIN
"""How long the marker or slot of a run without a record is kept: the event of that run may be redelivered."""


def limits_for(services: Services, spec: JobSpec, team: str | None) -> tuple[SlotSet, ...]:
    """The limits that cover the team's run, by the current policy."""
    return limits_of(services.policy(), spec.model_name, spec.labels, team)


def take_slots(
    services: Services, run_id: str, limits: Sequence[SlotSet], queue_pass: QueuePass, *, reclaim: bool
) -> tuple[tuple[str, ...], SlotSet | None]:
    """Take one slot of each limit, but none that `queue_pass` keeps for a run that another attempt is submitting.

    Returns the slots now held, as records name them, and the limit that is full, if one is: then they are those of the
    limits before it. Give them back only after the record says that the run holds none: a run that another attempt has
    taken over meanwhile may have its job under them.

    With `reclaim`, a slot of a full limit is taken over if its holder's record says that the run holds none.
    """
    taken: list[str] = []
    for limit in limits:
        held = _take(services, run_id, limit, queue_pass, reclaim=reclaim)
        if held is None:
            return tuple(taken), limit
        taken.append(held)
    return tuple(taken), None


def full_limit(
    services: Services, run_id: str, limits: Sequence[SlotSet], queue_pass: QueuePass | None, *, reclaim: bool
) -> SlotSet | None:
    """The first limit without a slot for the run; it costs one listing per limit, and writes nothing."""
    free = (_available_slot(services, run_id, limit, queue_pass, reclaim=reclaim) for limit in limits)
    return next((limit for limit, slot in zip(limits, free, strict=False) if slot is None), None)


def give_back(services: Services, slots: Sequence[str]) -> None:
    """Free the slots that are unchanged since they were taken. Safe to repeat; without slots it costs nothing."""
    for held in slots:
        services.slots.free(held)


def job_cost(services: Services, record: RunRecord, job: Job, spec: JobSpec | None = None) -> Cost | None:
    """The cost of a job of the run, if that has an estimate: otherwise no price table is needed. `spec` as `cost_of`.

    Raises:
        PolicyInvalid: the price table cannot be used.
    """
    estimate = record.request.estimate if record.request is not None else None
    if estimate is None or services.prices is None:
        return None
    return cost_of(record, job, services.prices(), spec)


def settle_cost(services: Services, record: RunRecord) -> None:
    """If a cap counts the cost of the ended run's day, free what the run did not spend of its maximum. Safe to repeat."""
    started_at, cost = record.history[0].at, final_cost(record)
    is_today = started_at.date() == services.clock.now().date()
    if is_today and cost is not None and services.policy().admission.caps.cost_per_day is not None:
        group = record.source.group
        services.starts.settle(record.run_id, started_at, cost, group.id if group else None)


def _take(
    services: Services, run_id: str, limit: SlotSet, queue_pass: QueuePass, *, reclaim: bool
) -> str | None:
    for _ in range(RACES_MAX):
        available = _available_slot(services, run_id, limit, queue_pass, reclaim=reclaim)
        if available is None:
            return None
        try:
            number, instead_of = available
            return services.slots.take(limit.name, number, run_id, instead_of=instead_of)
        except GenerationMoved:
            continue  # another attempt was faster, or the response was lost: the next listing shows it
    return None


def _available_slot(
    services: Services, run_id: str, limit: SlotSet, queue_pass: QueuePass | None, *, reclaim: bool
) -> tuple[int, Slot | None] | None:
    """The number of a slot that the run may take, and how it was read if it is not free."""
    slots = services.slots.taken_slots(limit.name)
    own = next((slot for slot in slots if slot.holder == run_id), None)
    if own is not None:
        # Written again: an earlier attempt of this run may be about to give back the version that it took.
        return own.number, own
    free, holders = _free_numbers(limit, slots, run_id), {slot.holder for slot in slots}
    # Free slots are kept for runs that other attempts are submitting now.
    kept = 0 if queue_pass is None else len(queue_pass.claimed_at(limit.name) - holders)
    if len(free) > kept:
        return free[0], None
    if len(free) < kept or not reclaim:
        return None
    left = next((slot for slot in slots if _is_left(services, slot)), None)
    return None if left is None else (left.number, left)


def _free_numbers(limit: SlotSet, slots: Sequence[Slot], run_id: str) -> list[int]:
    """The numbers that may be taken. Of a lowered limit, fewer, as long as more than it allows are taken.

    Each run starts at a different number, so that concurrent runs do not all compete for the same slot.
    """
    numbers = {slot.number for slot in slots}
    if len(numbers) >= limit.slots:
        return []
    beyond = sum(number >= limit.slots for number in numbers)
    free = [number for number in range(limit.slots - beyond) if number not in numbers]
    begin = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8]) % len(free) if free else 0
    return free[begin:] + free[:begin]


def _is_left(services: Services, slot: Slot) -> bool:
    """Whether no run holds the slot any more.

    The slot is listed before its holder's record is read, and taken over only in the version that was listed: an
    attempt that takes it again for that run meanwhile has written a new version.
    """
    now = services.clock.now()
    try:
        held = services.ledger.find(slot.holder)
    except RecordDamaged:  # the reconciler reports it; the slot is kept while there may be a job
        return now - slot.taken_at > ORPHAN_AGE and not _has_job(services, slot.holder)
    if held is None:
        return now - slot.taken_at > ORPHAN_AGE
    record = held.record
    return record.ended or (
        record.state is RunState.WAITING
        and live_lease(record, now) is None
        and all(slot.name != held_slot_parts(own)[0] for own in record.admission.slots)
    )


def _has_job(services: Services, run_id: str) -> bool:
    """Whether a job of the run is active, in any region and of any kind: for a run whose record is unreadable."""
    regions = dict.fromkeys((services.target.region, *services.policy().region_names))
    found = (job for kind in JobKind for job in services.jobs.of_run(run_id, kind, tuple(regions)))
    return any(job.state not in END_OF for job in found)


def place_of(services: Services, record: RunRecord) -> Place:
    """The place that the record asks for. For a run that does not wait, the place that it would have."""
    candidates = candidates_of(record)
    pools = len(record.request.pools or ()) if record.request else 0
    # It waits in the line of its own machines; a pool that it prefers has none.
    due = sorted(
        candidates[min(record.submission.candidate, len(candidates) - 1) :],
        key=lambda one: one.number < pools,
    )
    waiting = record.admission.waiting
    lacks = waiting.lacks if waiting is not None else None
    # While it lacks something, another candidate would not help: fallbacks have the same account and project.
    classes = list(map(quota_class, due)) if lacks is None else [lacks]
    return Place(
        run_id=record.run_id,
        region=due[0].region,
        priority=candidates[0].spec.priority,
        arrived_at=record.source.event_time,
        classes=tuple(dict.fromkeys(classes)),
        not_before=waiting.not_before if waiting is not None else record.updated_at,
        limits=tuple(limit.name for limit in limits_for(services, candidates[0].spec, record.source.team)),
        rate_limited=waiting is not None and waiting.rate_limited,
        blocked_on_limit=waiting.limit if waiting is not None else None,
    )


def start_pass(services: Services, *, room_freed: bool = False) -> QueuePass:
    """A pass along the head of the current queue: one listing."""
    now, (places, has_more) = services.clock.now(), services.queue.places()
    return QueuePass(places=places, began_at=now, room_freed=room_freed, has_more=has_more)


def leave_queue(services: Services, record: RunRecord) -> None:
    """Remove the place of a run that may have waited; for other runs this costs nothing."""
    if record.request and any(step.state is RunState.WAITING for step in record.history):
        services.queue.remove(place_of(services, record))
