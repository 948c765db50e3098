"""What the emulator knows of a bucket, an object and a notification configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FINALIZE = "OBJECT_FINALIZE"
"""The one event that is told. Source: https://cloud.google.com/storage/docs/pubsub-notifications#events"""

PUBSUB_PREFIX = "//pubsub.googleapis.com/"


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What tells one state of a plain file from another without reading it. `mtime_ns` counts from the epoch."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """The live generation of one object.

    `aside` is empty for a plain file in the bucket's folder; otherwise the name of the file, outside of it,
    that holds the bytes. `token` names the staged file that the bytes arrived in, so that an interrupted placement
    can be finished. `fields` holds the writable properties of the resource beside `contentType`, as the API spells them.
    Times are microseconds since the epoch; hashes are base64, `md5` empty for a composite object.
    """

    bucket: str
    name: str
    generation: int
    metageneration: int = 1
    fingerprint: Fingerprint
    md5: str
    crc32c: str
    content_type: str
    created_us: int
    updated_us: int
    fields: Mapping[str, object] = field(default_factory=dict)
    token: str = ""
    aside: str = ""

    @property
    def size(self) -> int:
        return self.fingerprint.size


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket; `fields` holds its writable properties as the API spells them."""

    name: str
    project: str
    created_us: int
    fields: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class NotificationConfig:
    """Who is told of finalized objects: `body` holds what its resource says, checked."""

    bucket: str
    id: int
    body: Mapping[str, Any]

    @property
    def topic(self) -> str:
        """`projects/P/topics/T`."""
        return str(self.body["topic"]).removeprefix(PUBSUB_PREFIX)

    def asks_for(self, name: str) -> bool:
        return name.startswith(self.body.get("object_name_prefix", ""))
