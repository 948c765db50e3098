"""Telling what became of a run: the status object of its drop, and a notice of every state it entered.

A state that is no end is told before the record shows it: the fact, a job that exists or runs, is there
already, and a crash between the two tells it again. An end, and whatever became known with it, is told after
it is on record, for only then is it final, and no run may miss its end because nothing can be published; the
marker says that its notices are owed.
"""

from dataclasses import replace

from trainmaster.orchestrator.core.notices.notice import run_entered
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.requests.request import dialect_of
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.caps import tell_cap
from trainmaster.orchestrator.flows.champion import challenge
from trainmaster.orchestrator.flows.queueing import leave_queue
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.slots import give_back
from trainmaster.orchestrator.ports.runs import DropStatus, Held


def tell_status(services: Services, held: Held) -> None:
    """Bring the drop's status up to the record. Safe to repeat; runs that nobody dropped have none."""
    record, source = held.record, held.record.source
    if source.object_name is None or source.generation is None:
        return
    services.ledger.tell_status(
        DropStatus(
            dropped_name=source.object_name,
            generation=source.generation,
            run_id=record.run_id,
            state=record.state,
            updated_at=record.updated_at,
            record_uri=services.ledger.record_uri(record.run_id),
            record_generation=held.version,
            reason=_reason(record),
            report_uri=record.rejection.report_uri if record.rejection else None,
            model_uri=record.model.uri if record.model else None,
            problems=() if record.state is RunState.REJECTED else record.problems,
        )
    )


def _reason(record: RunRecord) -> str | None:
    if record.admission.waiting is not None:
        return record.admission.waiting.reason
    return record.failure.message if record.failure is not None else None


def warned(happened: Happened, record: RunRecord) -> Happened:
    """The log's line with what the request was warned of when it was accepted: the record's first problems."""
    if not record.problems:
        return happened
    message = "; ".join((happened.message, *(f"warning: {problem}" for problem in record.problems)))
    severity = "WARNING" if happened.severity == "INFO" else happened.severity
    return replace(happened, message=message, severity=severity)


def tell_order(services: Services, arrival: Arrival, *, about_uri: str, model_uri: str | None = None) -> None:
    """Say of a dropped order that it was carried out, and where what it changed lies. Safe to repeat."""
    source = arrival.source
    if source.object_name is None or source.generation is None:
        return
    services.ledger.tell_status(
        DropStatus(
            dropped_name=source.object_name,
            generation=source.generation,
            run_id=arrival.run_id,
            state=RunState.SUCCEEDED,
            updated_at=services.clock.now(),
            record_uri=about_uri,
            model_uri=model_uri,
        )
    )


def tell_steps(services: Services, before: RunRecord, after: RunRecord) -> None:
    """Tell the states that `after` enters: before it is written, unless it has ended.

    That a run was reserved is told with its next state: until then there is nothing to tell of but a lease.
    """
    uri = services.ledger.record_uri(after.run_id)
    for number, step in enumerate(after.history):
        if number >= len(before.history) or before.state is step.state is RunState.RESERVED:
            services.notices.publish(run_entered(after, number, uri))


def tell_end(services: Services, held: Held, before: RunRecord | None = None) -> None:
    """Status, champion, the notices, what it holds, then the marker goes: until it is gone all of them are owed.

    It stays while a second look is due, which the sweep takes.

    Told are the states that `before` has not; without it, nobody knows which were told, and all are.
    A crash between any two repeats them all; each is safe to repeat, and a notice keeps its id.
    """
    tell_status(services, held)
    record = held.record
    if record.request:
        challenge(
            services,
            record,
            dialect_of(record.request.document).spec_from(record.request.document, record.model_name),
        )
    tell_steps(services, before or replace(record, history=()), record)
    tell_cap(services, record)
    if before is None or before.state is RunState.WAITING:
        leave_queue(services, record)
    give_back(services, record.admission.slots)
    if record.submission.second_job_check_at is None:
        services.ledger.unmark(record.run_id)


def tell_again(services: Services, held: Held) -> None:
    """Tell what whoever wrote the record may have died over, to whoever comes with the same event.

    Of an end without a job that is looked after once more, all of it: the sweep comes late to that one.
    """
    record = held.record
    if record.ended and record.job is None and record.submission.second_job_check_at is not None:
        tell_end(services, held, before_end(record))
    else:
        tell_status(services, held)


def before_end(record: RunRecord) -> RunRecord | None:
    """The record as it was before a run without a job ended: what came before the end was told. None: not known."""
    if record.job is not None or len(record.history) < 2:  # noqa: PLR2004  # its end alone
        return None
    history = record.history[:-1]
    return replace(record, history=history, state=history[-1].state)
