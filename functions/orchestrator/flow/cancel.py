"""A run is ended before its time: by an order, or because a rule replaces it.

    record    says that the run is to end: a job that ends for want of capacity now is followed by no other
    job       is asked to end; the run ends when the job says that it has

A run without a job ends at once. Until somebody's lease is over, nobody knows whether there is one.
"""

from dataclasses import replace

from orchestrator.core.errors import LeaseHeld
from orchestrator.core.run import RunState, moved, taken_over
from orchestrator.flow.ladder import ladder_for
from orchestrator.flow.outcome import job_of, present, submitted
from orchestrator.flow.services import Happened, Services
from orchestrator.flow.telling import tell_end
from orchestrator.ports import Held


def cancel(services: Services, held: Held) -> Happened:
    """End the run, or ask its job to. Safe to repeat, and for a run that has ended.

    Raises:
        LeaseHeld: the run is being submitted at this moment.
        RecordMoved: it has just changed.
        ServiceFailed: the job was not asked.
    """
    if held.record.job is None and held.record.lease is not None:
        held = _after_lease(services, held)
    record = held.record
    if record.ended:
        return Happened(message=f"the run had ended before: {record.state}", run_id=record.run_id)
    if record.job is None:
        return _end_without_job(services, held)
    return _ask_job(services, held, record.job.name)


def _after_lease(services: Services, held: Held) -> Held:
    """The record of a run whose lease is over, with the job that came of it, if one did."""
    now = services.clock.now()
    lease = held.record.live_lease(now)
    if lease is not None:
        raise LeaseHeld(held.record.run_id, lease.expires_at)
    over = taken_over(held.record, attempt=services.attempt, now=now, lease=services.lease)
    held = services.ledger.replace(held, over)
    job = job_of(services, held.record, ladder_for(services, held.record))
    if job is None:
        return held
    submitted(services, held, job, "a job of this run was found and adopted")
    return present(services, held.record.run_id)


def _end_without_job(services: Services, held: Held) -> Happened:
    now = services.clock.now()
    cancelled = moved(held.record, RunState.CANCELLED, entered_at=now, now=now, attempt=services.attempt)
    services.ledger.replace(held, cancelled)
    tell_end(services, cancelled, held.record)
    return Happened(message="the run was cancelled before it had a job", run_id=cancelled.run_id, is_due=True)


def _ask_job(services: Services, held: Held, job: str) -> Happened:
    record, now = held.record, services.clock.now()
    if record.cancel_asked_at is None:
        asked = replace(record, cancel_asked_at=now, updated_at=now, attempt=services.attempt)
        services.ledger.replace(held, asked)
    services.jobs.cancel(job)
    return Happened(message=f"{job} was asked to end", run_id=record.run_id)
