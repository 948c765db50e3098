"""Data events as Eventarc delivers them, posted directly to the function."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from urllib.parse import urlsplit

FINALIZED = "google.cloud.storage.object.v1.finalized"


@dataclass(frozen=True, kw_only=True)
class DataEvent:
    """One HTTP request."""

    headers: Mapping[str, str]
    body: bytes


def data_event(
    bucket: str, name: str, generation: int, *, size_bytes: int = 1000, at: datetime | None = None
) -> DataEvent:
    now = (at or datetime.now(UTC)).isoformat()
    resource = {
        "kind": "storage#object",
        "bucket": bucket,
        "name": name,
        "generation": str(generation),
        "metageneration": "1",
        "contentType": "image/jpeg",
        "timeCreated": now,
        "updated": now,
        "size": str(size_bytes),
    }
    headers = {
        "ce-id": f"{name}-{generation}",
        "ce-source": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "ce-specversion": "1.0",
        "ce-type": FINALIZED,
        "ce-time": now,
        "ce-subject": f"objects/{name}",
        "ce-bucket": bucket,
        "Content-Type": "application/json",
    }
    return DataEvent(headers=headers, body=json.dumps(resource).encode())


def post(url: str, event: DataEvent) -> int:
    """The response's status; each event has a new connection, as from the stack's front end."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port or 0, timeout=60)
    try:
        connection.request("POST", "/", body=event.body, headers=dict(event.headers))
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    return answer.status
