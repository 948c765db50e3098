"""Finalized data objects, and the batches in which they are kept until a tick counts them."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.orchestrator.core.documents.codec import decoded_time, encoded_time, parse_json, time_or
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.names import is_data
from trainmaster.orchestrator.core.requests.incoming import StoredObject, parse_stored_object

ARRIVALS_PREFIX = "arrivals/"
_CRC32C = re.compile(r"[A-Za-z0-9+/]{6}==")


@dataclass(frozen=True, kw_only=True)
class ArrivedObject(StoredObject):
    """A finalized object. `created_at` is Cloud Storage's creation time of this generation.

    `crc32c` is the checksum of its content as Cloud Storage gives it; empty if the event has none.
    """

    created_at: datetime
    crc32c: str = ""

    @property
    def dir_uri(self) -> str:
        """Its folder, with a trailing `/`."""
        return self.uri.rpartition("/")[0] + "/"

    @property
    def is_data(self) -> bool:
        """Whether it may count as data: it has content, and its name is that of no marker or temporary object."""
        return self.size_bytes > 0 and is_data(self.name)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Arrivals that were written together. `name` is the batch's object, which is written once and never changed."""

    name: str
    arrivals: tuple[ArrivedObject, ...]


def batch_object(at: datetime, instance: str, number: int) -> str:
    """`arrivals/<time>-<instance>-<number>`: sorts by time and is unique among writers.

    Args:
        at: when the batch was closed.
        instance: hexadecimal text that is unique to this process.
        number: counts the batches of this process.
    """
    return f"{ARRIVALS_PREFIX}{at.astimezone(UTC):%Y%m%dt%H%M%S%f}-{instance}-{number}"


def parse_arrived_object(envelope: Envelope) -> ArrivedObject:
    """The finalized object that the event reports.

    Raises:
        EventMalformed: the event does not name an object and its generation.
    """
    fields = envelope.data if isinstance(envelope.data, Mapping) else {}
    bucket, name = fields.get("bucket"), fields.get("name")
    if not (isinstance(bucket, str) and bucket and isinstance(name, str) and name):
        raise EventMalformed(f"event {envelope.id!r} does not name an object")
    stored = parse_stored_object(envelope, bucket, name)
    created_at, checksum = time_or(fields.get("timeCreated"), envelope.time), str(fields.get("crc32c"))
    known = {**vars(stored), "content_id": None}  # an arrival is known by its checksum alone
    crc32c = checksum if _CRC32C.fullmatch(checksum) else ""
    return ArrivedObject(**known, created_at=created_at, crc32c=crc32c)


def encoded_batch(arrivals: Iterable[ArrivedObject]) -> bytes:
    """The arrivals as JSON, one a line: `[bucket, name, generation, size, time]`, and the checksum if it is known."""
    lines = list[str]()
    for one in arrivals:
        row = [one.bucket, one.name, one.generation, one.size_bytes, encoded_time(one.created_at)]
        lines.append(json.dumps([*row, one.crc32c] if one.crc32c else row))
    return "".join(f"{line}\n" for line in lines).encode()


def parse_batch(name: str, content: bytes) -> Batch:
    """The batch that `encoded_batch` wrote.

    Raises:
        ValueError: the content is not a batch; the message names the line.
    """
    lines = enumerate(content.splitlines(), start=1)
    arrivals = tuple(_parse_arrival(name, number, line) for number, line in lines if line)
    return Batch(name=name, arrivals=arrivals)


def _parse_arrival(name: str, number: int, line: bytes) -> ArrivedObject:
    try:
        bucket, object_name, generation, size_bytes, created_at, *crc32c = parse_json(line)
        return ArrivedObject(
            bucket=str(bucket),
            name=str(object_name),
            generation=int(generation),
            size_bytes=int(size_bytes),
            created_at=decoded_time(created_at),
            crc32c="".join(map(str, crc32c)),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}, line {number}: not an arrival: {error}") from error
