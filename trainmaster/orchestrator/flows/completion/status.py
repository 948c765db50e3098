"""What users see of a run: the status object of its drop, and a notice of every state it entered.

The notice of a state that is no end is published before the record shows the state: the fact, a job that exists or
runs, is there already, and after a crash between the two it is published again. The notice of an end follows the
record (`finish.py`), for only the record makes the end final.
"""

from collections.abc import Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.notices.notice import run_entered
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.stores.ledger import DropStatus, Held


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


def warned(happened: Happened, problems: Sequence[str]) -> Happened:
    """The log's line with these problems."""
    if not problems:
        return happened
    message = "; ".join((happened.message, *(f"warning: {problem}" for problem in problems)))
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
