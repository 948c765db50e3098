"""A run is ended before its time: by an order, or because a rule replaces it.

    record    says that the run is to end: no job follows, whatever becomes of the one it may have
    job       is asked to end, by the sweep again and again; the run ends when the job says that it has

A run without a job ends at once. Until somebody's lease is over, nobody knows whether there is one.
"""

from dataclasses import replace

from orchestrator.core.errors import LeaseHeld
from orchestrator.core.run import taken_over
from orchestrator.flow.ladder import ladder_for
from orchestrator.flow.outcome import cancelled, job_of, present, submitted
from orchestrator.flow.services import Happened, Services
from orchestrator.flow.telling import tell_again
from orchestrator.ports import Held


def cancel(services: Services, held: Held) -> Happened:
    """End the run, or ask its job to. Safe to repeat, and for a run that has ended.

    Raises:
        LeaseHeld: the run is being submitted at this moment.
        RecordMoved: it has just changed.
        ServiceFailed: the job was not asked; the sweep asks it again.
    """
    if held.record.job is None and held.record.lease is not None:
        held = _after_lease(services, held)
    record, now = held.record, services.clock.now()
    if record.ended:
        tell_again(services, record)
        return Happened(message=f"the run had ended before: {record.state}", run_id=record.run_id)
    if record.job is None:
        return cancelled(services, held)
    if record.cancel_asked_at is None:
        asked = replace(record, cancel_asked_at=now, updated_at=now, attempt=services.attempt)
        services.ledger.replace(held, asked)
    services.jobs.cancel(record.job.name)
    return Happened(message=f"{record.job.name} was asked to end", run_id=record.run_id)


def _after_lease(services: Services, held: Held) -> Held:
    """The record of a run whose lease is over, with the job that came of it, if one did."""
    record, now = held.record, services.clock.now()
    wanted = replace(record, cancel_asked_at=record.cancel_asked_at or now)
    lease = record.live_lease(now)
    if lease is not None:
        if record.unanswered > 0 and wanted != record:
            # The lease outlives a submission without an answer, and the sweep may be at the next one before us.
            services.ledger.replace(held, replace(wanted, updated_at=now, attempt=services.attempt))
        raise LeaseHeld(record.run_id, lease.expires_at)
    over = taken_over(wanted, attempt=services.attempt, now=now, lease=services.lease)
    held = services.ledger.replace(held, over)
    job = job_of(services, held.record, ladder_for(services, held.record))
    if job is None:
        return held
    submitted(services, held, job, "a job of this run was found and adopted")
    return present(services, record.run_id)
