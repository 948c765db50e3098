"""Run records as a reader of the ledger finds them."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from trainmaster.client.clients import Target

if TYPE_CHECKING:
    from google.cloud.storage import Client as StorageClient

_NAME_MAX_BYTES = 1024  # https://cloud.google.com/storage/quotas


def latest_run_of(
    storage: "StorageClient", target: Target, object_name: str, generation: int
) -> dict[str, Any]:
    """The run record of one drop, empty while the ledger knows nothing of that generation."""
    status = _read(storage, target, status_object(object_name))
    if not status or int(status["generation"]) != generation:
        return {}
    return _read(storage, target, f"runs/{status['run_id']}.json")


def status_object(dropped_name: str) -> str:
    """The object that says where the latest drop of that name stands, as docs/contracts.md names it."""
    name = f"status/{dropped_name}.json"
    if not dropped_name.isprintable() or {"", ".", ".."} & set(dropped_name.split("/")):
        return f"status/odd-name-{_digest(dropped_name)}.json"
    if len(name.encode()) > _NAME_MAX_BYTES:
        return f"status/long-name-{_digest(dropped_name)}.json"
    return name


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _read(storage: "StorageClient", target: Target, object_name: str) -> dict[str, Any]:
    from google.api_core.exceptions import NotFound

    try:
        content = storage.bucket(target.ledger_bucket).blob(object_name).download_as_bytes()
    except NotFound:
        return {}
    document: dict[str, Any] = json.loads(content)
    return document
