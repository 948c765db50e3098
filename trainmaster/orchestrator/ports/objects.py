"""Objects with generations, as in Cloud Storage: the stores are built on them."""

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
    """An object as listed, with its custom metadata. Checksums are base64; a composed object has no MD5."""

    name: str
    generation: int
    size_bytes: int
    created_at: datetime
    crc32c: str = ""
    md5: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class Objects(Protocol):
    """Objects by bucket and name. Reads and listings see every write that completed before them.

    Source: https://cloud.google.com/storage/docs/consistency
    """

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        """The live object, or the given generation if it is still live.

        `max_bytes`: usually from `core/sizes.py`. No more than a little over that is transferred or kept.

        Raises:
            ObjectGone: it does not exist.
            ObjectTooLarge: it has more bytes.
        """
        ...

    def describe(self, bucket: str, name: str, generation: int | None = None) -> Listed:
        """The live object, or the given generation if it is still live, as a listing shows it.

        Raises:
            ObjectGone: it does not exist.
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
        """Write the object, and return its generation.

        `if_generation` 0 writes only if no object exists; None overwrites whatever exists.

        Raises:
            GenerationMoved: the live object has another generation than `if_generation`.
        """
        ...

    def copy(
        self, source: tuple[str, str, int], bucket: str, name: str, *, token: str | None = None
    ) -> Listed | str:
        """Copy `source`, which is a bucket, a name and a generation, to a new object, without reading its content.

        Returns the copy as a listing shows it, or of one that takes more than one call the `token` with which the next
        call continues it. An object that exists is never replaced.

        Raises:
            ObjectGone: that generation of the source no longer exists.
            GenerationMoved: an object of that name exists.
        """
        ...

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        """Delete the object; a missing object counts as deleted.

        With `if_generation`, delete only that generation.

        Raises:
            GenerationMoved: the live object has another generation than `if_generation`.
        """
        ...

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        """The objects whose names begin with the prefix, by name; only those behind `after`, a name with this prefix.

        Raises:
            ObjectGone: the bucket does not exist.
        """
        ...
