"""Finds a run by its id, by the file that started it, or by its message."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.client.errors import NotFound
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.names import (
    REQUESTS_PREFIX,
    is_run_id,
    message_status_object,
    object_uri,
    record_object,
    status_object,
)
from trainmaster.orchestrator.core.runs.record import RECORD_SCHEMA, RunRecord

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

DOCUMENT_MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as its record says: the document for programs, and the same for this code."""

    document: dict[str, Any]
    """schemas/run_record.v2.schema.json."""
    record: RunRecord


def find_run(clients: "Clients", text: str) -> Run:
    """The run that `text` means: a run's id, a request's file or object, or the id or key of a message.

    A file or message means the latest run that it started.

    Raises:
        NotFound: nothing of that name has started a run.
    """
    if is_run_id(text) and (found := _run(clients, text)):
        return found
    for name in _status_names(clients, text):
        status = read_document(clients, name)
        if status is not None:
            return _of_status(clients, text, status)
    raise NotFound(
        f"No run, file or message {text!r} in {clients.context.title}. List the runs: trainmaster ls"
    )


def _of_status(clients: "Clients", text: str, status: dict[str, Any]) -> Run:
    run_id = status.get("run_id")
    found = _run(clients, str(run_id)) if run_id else None
    if found is None:
        raise NotFound(
            f"{text!r} has started no run; its status is {status.get('state')}: {status.get('reason')}"
        )
    return found


def _status_names(clients: "Clients", text: str) -> list[str]:
    name = text.removeprefix(object_uri(clients.context.inbox_bucket, ""))
    dropped = name if name.startswith(REQUESTS_PREFIX) else f"{REQUESTS_PREFIX}{Path(name).name}"
    return [
        status_object(dropped),
        message_status_object(message_id=text, idempotency_key=None),
        message_status_object(message_id="", idempotency_key=text),
    ]


def _run(clients: "Clients", run_id: str) -> Run | None:
    document = read_document(clients, record_object(run_id))
    if document is None:
        return None
    if document.get("schema") != RECORD_SCHEMA:
        raise NotFound(
            f"The record of {run_id} is {document.get('schema')!r}, which this version cannot read."
        )
    return Run(document=document, record=decoded(RunRecord, document))


def read_document(clients: "Clients", name: str) -> dict[str, Any] | None:
    """The JSON document of this name in the ledger; None if there is none.

    Raises:
        NotFound: the object is no JSON document, or larger than DOCUMENT_MAX_BYTES.
        google.api_core.exceptions.GoogleAPICallError: the object cannot be read.
    """
    from google.api_core.exceptions import NotFound as ObjectNotFound

    bucket = clients.context.ledger_bucket
    try:
        content = clients.storage.bucket(bucket).blob(name).download_as_bytes(end=DOCUMENT_MAX_BYTES)
    except ObjectNotFound:
        return None
    try:
        document: dict[str, Any] = json.loads(content)
    except ValueError as fault:
        raise NotFound(f"{object_uri(bucket, name)} is damaged: it is no JSON document ({fault}).") from fault
    return document
