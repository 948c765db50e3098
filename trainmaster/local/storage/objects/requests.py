"""Which object a request is about, and what it asks of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.local.storage.objects.preconditions import Preconditions


@dataclass(frozen=True, kw_only=True)
class Target:
    """An object that must be there, in this generation where one is named, and what must hold of it."""

    bucket: str
    name: str
    generation: int | None
    conditions: Preconditions


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """What an upload asks for, apart from the bytes. The hashes are empty when the client did not send them."""

    bucket: str
    name: str
    content_type: str
    fields: Mapping[str, object]
    conditions: Preconditions
    md5: str = ""
    crc32c: str = ""
