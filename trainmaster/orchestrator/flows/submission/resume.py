"""A run on record is taken up again: by another delivery of its event, an order, the sweep or its turn in the queue."""

from trainmaster.orchestrator.core.admission.queue import QueuePass
from trainmaster.orchestrator.core.errors import LeaseHeld
from trainmaster.orchestrator.core.runs.moves import taken_over
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.admission.blocker import submission_blocker
from trainmaster.orchestrator.flows.completion.finish import refresh_status
from trainmaster.orchestrator.flows.completion.telling import tell_status, warned
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.submission.outcome import cancelled, failed, job_of, submitted
from trainmaster.orchestrator.flows.submission.submit import submit
from trainmaster.orchestrator.stores.ledger import Held


def resume(services: Services, held: Held) -> Happened:
    """Bring a run on record as far as it can go now.

    Raises:
        LeaseHeld: another attempt has it.
    """
    record = held.record
    if record.state not in (RunState.RESERVED, RunState.WAITING):
        refresh_status(services, held)
        return Happened(message=f"the run is on record already, {record.state}", run_id=record.run_id)
    lease = record.live_lease(services.clock.now())
    if lease is not None:
        raise LeaseHeld(record.run_id, lease.expires_at)
    if record.state is RunState.WAITING:
        tell_status(services, held)
        return Happened(message="the run waits for room", run_id=record.run_id)
    return take_over(services, held, None)


def take_over(
    services: Services, held: Held, queue_pass: QueuePass | None, *, reclaim: bool = False
) -> Happened:
    """Take the run over, look for a job that it may have, and submit it where it has none. See `submit`.

    Raises:
        RecordMoved: another attempt was faster.
    """
    record = held.record
    over = taken_over(record, attempt=services.attempt, now=services.clock.now(), lease=services.lease)
    held = services.ledger.replace(held, over)
    job = job_of(services, held.record)
    blocker = submission_blocker(services, held.record) if job is None else None
    if job is None and blocker is None:
        return warned(submit(services, held, queue_pass, reclaim=reclaim), record.problems)
    if queue_pass is not None:
        queue_pass.mark_gone(record.run_id)
    if job is not None:
        adopted = submitted(services, held, job, "a job of this run was found and adopted")
        return warned(adopted, record.problems)
    if blocker is None or blocker.failure is None:
        return cancelled(services, held)
    return failed(services, held, blocker.failure, faults=blocker.faults)
