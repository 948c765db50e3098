"""Rows of the index on a storage server."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.client.served import Served
from trainmaster.orchestrator.core.runs.index import IndexRow, index_object, row_metadata
from trainmaster.orchestrator.core.runs.states import RunState

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def row(
    number: int, *, state: RunState = RunState.SUCCEEDED, labels: Mapping[str, str] | None = None, **more: Any
) -> IndexRow:
    """The run that was recorded that many minutes after START."""
    created_at = START + timedelta(minutes=number)
    fields: dict[str, Any] = {
        "source": "upload", "model_name": "cassava", "updated_at": created_at, "generation": 1, **more,
    }  # fmt: skip
    return IndexRow(run_id=f"run-{number}", created_at=created_at, state=state, labels=labels or {}, **fields)


def write_row(served: Served, row: IndexRow) -> None:
    write_index_object(served, index_object(row.created_at, row.run_id), row_metadata(row))


def write_rows(served: Served, rows: Iterable[IndexRow]) -> None:
    for each in rows:
        write_row(served, each)


def write_index_object(served: Served, name: str, metadata: Mapping[str, str]) -> None:
    clients = served.clients
    blob = clients.storage.bucket(clients.context.ledger_bucket).blob(name)
    blob.metadata = dict(metadata)
    blob.upload_from_string(b"1")
