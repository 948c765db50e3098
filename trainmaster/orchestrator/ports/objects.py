"""What the stores are built on: objects with generations, as Cloud Storage keeps them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Stored:
    """An object's content and the generation it was read at."""

    content: bytes
    generation: int


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An object as a listing shows it, with its custom metadata. Checksums are base64; a composed object has no MD5."""

    name: str
    generation: int
    size_bytes: int
    created_at: datetime
    crc32c: str = ""
    md5: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class Objects(Protocol):
    """Objects by bucket and name. Reads and listings see every write that was answered before them.

    Source: https://cloud.google.com/storage/docs/consistency
    """

    def read(self, bucket: str, name: str, generation: int | None = None) -> Stored:
        """The live object, or the given generation if it is the live one still.

        Raises:
            ObjectGone: there is none.
        """
        ...

    def read_start(self, bucket: str, name: str, max_bytes: int) -> bytes:
        """The first `max_bytes` of the live object's content; all of it where it is smaller.

        Raises:
            ObjectGone: there is none.
        """
        ...

    def write(
        self,
        bucket: str,
        name: str,
        content: bytes,
        *,
        if_generation: int | None,
        metadata: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> int:
        """The generation of the object now written.

        `if_generation` 0 writes only where no object is, None whatever is there.

        Raises:
            GenerationMoved: the live object has another generation than `if_generation`.
        """
        ...

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        """Remove the object; one that is not there counts as removed.

        With `if_generation`, only that generation of it.

        Raises:
            GenerationMoved: the live object has another generation than `if_generation`.
        """
        ...

    def listing(self, bucket: str, prefix: str) -> Iterator[Listed]:
        """The objects whose names begin with the prefix, by name.

        Raises:
            ObjectGone: the store knows that there is no such bucket.
        """
        ...


def json_bytes(value: object) -> bytes:
    """The document as it is stored: for people to read, and whatever its strings hold, it can be written."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"
