"""Telling what became of a run: the status object of its drop, and the notice of its end."""

from orchestrator.core.codec import encoded
from orchestrator.core.run import RunRecord
from orchestrator.flow.services import Services
from orchestrator.ports import DropStatus, Notice


def tell_status(services: Services, record: RunRecord) -> None:
    """Bring the drop's status up to the record. Safe to repeat; runs that nobody dropped have none."""
    source = record.source
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
            report_uri=record.report_uri,
            model_uri=record.model.uri if record.model else None,
        )
    )


def tell_end(services: Services, record: RunRecord) -> None:
    """Status, then the notice, then the marker goes: until it is gone the notice counts as owed.

    A crash between the last two repeats the notice, under the same id.
    """
    tell_status(services, record)
    services.notices.publish(notice_of(record, services.ledger.record_uri(record.run_id)))
    services.ledger.unmark(record.run_id)


def notice_of(record: RunRecord, record_uri: str) -> Notice:
    """The notice of the run's end; the same for the same end."""
    data: dict[str, object] = {
        "run_id": record.run_id,
        "state": record.state.value,
        "model_name": record.model_name,
        "record_uri": record_uri,
        "model_uri": record.model.uri if record.model else None,
        "metrics": encoded(record.model.metrics) if record.model else None,
        "error": encoded(record.error) if record.error else None,
        "report_uri": record.report_uri,
    }
    return Notice(
        id=f"{record.run_id}/{record.state}",
        run_id=record.run_id,
        time=record.history[-1].at,
        data={key: value for key, value in data.items() if value is not None},
    )
