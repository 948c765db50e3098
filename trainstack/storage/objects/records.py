"""The emulator's records of buckets, objects and notification configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FINALIZE, METADATA_UPDATE = "OBJECT_FINALIZE", "OBJECT_METADATA_UPDATE"
DELETE, ARCHIVE = "OBJECT_DELETE", "OBJECT_ARCHIVE"
EVENTS = (FINALIZE, METADATA_UPDATE, DELETE, ARCHIVE)
NO_PAYLOAD = "NONE"
PAYLOADS = ("JSON_API_V1", NO_PAYLOAD)
"""The only supported event. Source: https://cloud.google.com/storage/docs/pubsub-notifications#events"""

PUBSUB_PREFIX = "//pubsub.googleapis.com/"


class Fingerprint(NamedTuple):
    """Identifies one state of a plain file without reading it. `mtime_ns` counts from the epoch."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectRecord:
    """One generation of an object. Compared by identity, so that what is made of it can be kept.

    `aside` is empty for a plain file in the bucket's folder; otherwise the name of the file, outside of it,
    with the bytes. `token` names the staged file of the upload, so that an interrupted move can be finished.
    `fields` has the writable properties of the resource except `contentType`, in the API's spelling, and its
    `customerEncryption`. Times are microseconds since the epoch, 0 for what did not happen; hashes are base64, `md5`
    empty for a composite object.

    A live generation has no `deleted_us`, when it became noncurrent, and no `soft_deleted_us`. `released_us` is the end
    of its last event-based hold. `retained_us`, until when the bucket's policy retains it, is computed at each reading.

    `acl` has the role of each entity, among them the owner; empty for the initial default. `owner` is the account that
    uploaded it, empty for the local user. Neither is known where access is uniform.
    """

    bucket: str
    name: str
    generation: int
    metageneration: int = 1
    fingerprint: Fingerprint
    md5: str = ""
    crc32c: str
    content_type: str = ""
    created_us: int
    updated_us: int
    fields: Mapping[str, object] = field(default_factory=dict)
    token: str = ""
    aside: str = ""
    deleted_us: int = 0
    soft_deleted_us: int = 0
    hard_delete_us: int = 0
    released_us: int = 0
    retained_us: int = 0
    owner: str = ""
    acl: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        return not (self.deleted_us or self.soft_deleted_us)

    @property
    def size(self) -> int:
        return self.fingerprint.size


@dataclass(frozen=True, kw_only=True)
class BucketRecord:
    """A bucket; `fields` has its writable properties in the API's spelling.

    `updated_us` is 0 before the first change. `bindings` are those of its IAM policy, and `default_acl` has the entries of
    the default list of its objects; None if they were never set.
    """

    name: str
    project: str
    created_us: int
    updated_us: int = 0
    metageneration: int = 1
    bindings: Sequence[Mapping[str, Any]] | None = None
    default_acl: Mapping[str, str] | None = None
    fields: Mapping[str, object]

    def setting(self, *path: str) -> Any:
        """The value at this path of the fields; None if it is missing."""
        value: Any = self.fields
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


@dataclass(frozen=True, kw_only=True)
class NotificationConfig:
    """A configuration for notifications of finalized objects: `body` has its validated resource."""

    bucket: str
    id: int
    body: Mapping[str, Any]

    @property
    def topic(self) -> str:
        """`projects/P/topics/T`."""
        return str(self.body["topic"]).removeprefix(PUBSUB_PREFIX)

    def asks_for(self, event: str, name: str) -> bool:
        """Without types of events, it asks for all."""
        is_asked = event in self.body.get("event_types", EVENTS)
        return is_asked and name.startswith(self.body.get("object_name_prefix", ""))
