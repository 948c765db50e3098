"""Reads documents of the ledger."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.cloud.storage import Client as StorageClient


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
