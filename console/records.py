"""Run records as a reader of the ledger finds them."""

import json
from typing import TYPE_CHECKING, Any

from console.clients import Target

if TYPE_CHECKING:
    from google.cloud.storage import Client as StorageClient


def latest_run_of(
    storage: "StorageClient", target: Target, object_name: str, generation: int
) -> dict[str, Any]:
    """The run record of one drop, empty while the ledger knows nothing of that generation."""
    status = _read(storage, target, f"status/{object_name}.json")
    if not status or int(status["generation"]) != generation:
        return {}
    return _read(storage, target, f"runs/{status['run_id']}.json")


def _read(storage: "StorageClient", target: Target, object_name: str) -> dict[str, Any]:
    from google.api_core.exceptions import NotFound

    try:
        content = storage.bucket(target.ledger_bucket).blob(object_name).download_as_bytes()
    except NotFound:
        return {}
    document: dict[str, Any] = json.loads(content)
    return document
