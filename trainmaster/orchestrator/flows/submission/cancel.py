"""A run is ended before its time: by an order, or because a rule replaces it.

    record    says that the run is to end: no job follows, whatever becomes of the one it may have
    job       is asked to end, by the sweep again and again; the run ends when the job says that it has

A run without a job ends at once. Until somebody's lease is over, nobody knows whether there is one.
"""

from dataclasses import replace

from trainmaster.orchestrator.core.errors import LeaseHeld
from trainmaster.orchestrator.flows.completion.finish import refresh_status
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.submission.outcome import cancelled, present
from trainmaster.orchestrator.flows.submission.resume import take_over
from trainmaster.orchestrator.stores.ledger import Held


def cancel(services: Services, held: Held) -> Happened:
    """End the run, or ask its job to. Safe to repeat, and for a run that has ended.

    Raises:
        LeaseHeld: the run is being submitted at this moment.
        RecordMoved: it has just changed.
        ServiceFailed: the job was not asked; the sweep asks it again.
    """
    record, now = held.record, services.clock.now()
    if record.ended:
        refresh_status(services, held)
        return Happened(message=f"the run had ended before: {record.state}", run_id=record.run_id)
    is_new = record.cancel_requested_at is None
    if is_new:
        asked = replace(record, cancel_requested_at=now, updated_at=now, attempt=services.attempt)
        held = replace(held, record=asked)
    if record.job is not None:
        if is_new:
            services.ledger.replace(held, held.record)
        services.jobs.cancel(record.job.name)
        return Happened(message=f"{record.job.name} was asked to end", run_id=record.run_id)
    if record.submission.lease is None:
        return cancelled(services, held)
    lease = record.live_lease(now)
    if lease is not None:
        if is_new and record.submission.unanswered > 0:
            # The lease outlives a submission without an answer, and the sweep may be at the next one before us.
            services.ledger.replace(held, held.record)
        raise LeaseHeld(record.run_id, lease.expires_at)
    happened = take_over(services, held, None)
    held = present(services, record.run_id)
    return cancel(services, held) if held.record.job is not None else happened
