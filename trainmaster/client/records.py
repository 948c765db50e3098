"""Reads documents of the ledger."""

import json
from typing import TYPE_CHECKING, Any

from trainmaster.client.context import Context
from trainmaster.orchestrator.core.names import status_object

if TYPE_CHECKING:
    from google.cloud.storage import Client as StorageClient


def latest_run_of(
    storage: "StorageClient", target: Context, object_name: str, generation: int
) -> dict[str, Any]:
    """The run record of one drop; empty until the ledger has one for that generation."""
    status = document_at(storage, target.ledger_bucket, status_object(object_name))
    if status.get("generation") != generation or "run_id" not in status:
        return {}
    return document_at(storage, target.ledger_bucket, f"runs/{status['run_id']}.json")


def document_at(storage: "StorageClient", bucket: str, name: str) -> dict[str, Any]:
    """The JSON document under that name; empty if there is none.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the object cannot be read.
    """
    from google.api_core.exceptions import NotFound

    try:
        content = storage.bucket(bucket).blob(name).download_as_bytes()
    except NotFound:
        return {}
    document: dict[str, Any] = json.loads(content)
    return document
