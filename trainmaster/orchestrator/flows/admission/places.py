"""A run's place in the queue, as its record and the policy have it."""

from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.admission.queue import Place, QueuePass
from trainmaster.orchestrator.core.admission.quota import quota_class
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.admission.slots import limits_for
from trainmaster.orchestrator.flows.services import Services


def place_of(services: Services, record: RunRecord) -> Place:
    """The place that the record asks for; that of a run that does not wait is where it would."""
    candidates = candidates_of(record)
    due = candidates[min(record.submission.candidate, len(candidates) - 1) :]
    waiting = record.admission.waiting
    return Place(
        run_id=record.run_id,
        region=due[0].region,
        priority=candidates[0].spec.priority,
        arrived_at=record.source.event_time,
        classes=tuple(dict.fromkeys(map(quota_class, due))),
        not_before=waiting.not_before if waiting is not None else record.updated_at,
        limits=tuple(limit.name for limit in limits_for(services, candidates[0].spec)),
        rate_limited=waiting is not None and waiting.rate_limited,
        blocked_on_limit=waiting.limit if waiting is not None else None,
    )


def start_pass(services: Services, *, room_freed: bool = False) -> QueuePass:
    """A pass along the queue as it is now: one listing."""
    now = services.clock.now()
    return QueuePass(places=services.queue.places(), began_at=now, room_freed=room_freed)


def leave_queue(services: Services, record: RunRecord) -> None:
    """Remove the place of a run that may have waited; for other runs this costs nothing."""
    if record.request and any(step.state is RunState.WAITING for step in record.history):
        services.queue.remove(place_of(services, record))
