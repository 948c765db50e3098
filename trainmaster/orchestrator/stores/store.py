"""Reads and writes of one bucket's objects, which all stores share."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from trainmaster.orchestrator.core.documents.codec import json_bytes, parse_json
from trainmaster.orchestrator.core.errors import DocumentDamaged, GenerationMoved, ObjectGone, ObjectTooLarge
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.ports.objects import Listed, Objects, Stored

TEXT, NDJSON = "text/plain", "application/x-ndjson"
RACES_MAX = 10
_Document = TypeVar("_Document")


class Store:
    """One bucket. Like any port, every method of a store may also raise ServiceFailed."""

    def __init__(self, objects: Objects, bucket: str) -> None:
        self.objects = objects
        self.bucket = bucket

    def _uri(self, name: str) -> str:
        return object_uri(self.bucket, name)

    def _find(self, name: str, max_bytes: int) -> Stored | None:
        """The object, or None if it does not exist.

        Raises:
            ObjectTooLarge: no store wrote it.
        """
        try:
            return self.objects.read(self.bucket, name, max_bytes=max_bytes)
        except ObjectGone:
            return None

    def _find_bounded(self, name: str, max_bytes: int) -> Stored | None:
        """The same; an object that is too large has no content, and is replaced like any other damaged one."""
        try:
            return self._find(name, max_bytes)
        except ObjectTooLarge:
            pass
        try:
            return Stored(content=b"", generation=self.objects.describe(self.bucket, name).generation)
        except ObjectGone:
            return None

    def _first(self, prefix: str, most: int) -> tuple[list[Listed], bool]:
        """The first objects below the prefix, by name, at most `most`; and whether there are more."""
        found = list(islice(self.objects.listing(self.bucket, prefix), most + 1))
        return found[:most], len(found) > most

    # Any: JSON; the parser checks it.
    def _parse(
        self, name: str, parse: Callable[[Any], _Document], max_bytes: int
    ) -> tuple[_Document | None, int, object]:
        """The document of that name, its generation, and its JSON; None, 0 and None if it does not exist.

        Raises:
            DocumentDamaged: the object holds something else, or has more than `max_bytes`.
        """
        try:
            stored = self._find(name, max_bytes)
            if stored is None:
                return None, 0, None
            raw = parse_json(stored.content)
            return parse(raw), stored.generation, raw
        except (ValueError, ObjectTooLarge) as error:
            raise DocumentDamaged(self._uri(name), damage(error)) from error

    def _write_once(self, name: str, content: bytes, content_type: str = "application/json") -> None:
        """Write the content if no object exists; the first one stays."""
        with suppress(GenerationMoved):
            self.objects.write(self.bucket, name, content, if_generation=0, content_type=content_type)

    def _mark(
        self,
        name: str,
        metadata: Mapping[str, str] | None = None,
        *,
        content: bytes = b"",
        if_generation: int | None = None,
    ) -> int:
        """Write a small object, of which a listing shows most, and return its generation; see `Objects.write`."""
        return self.objects.write(
            self.bucket, name, content, if_generation=if_generation, metadata=metadata, content_type=TEXT
        )

    def _write_newer(self, name: str, change: Callable[[bytes], object | None], max_bytes: int) -> None:
        """Write what `change` makes of the existing content, which is empty without any; None: it is newer.

        Raises:
            GenerationMoved: the object kept changing.
        """
        for _ in range(RACES_MAX):
            present = self._find_bounded(name, max_bytes) or Stored(content=b"", generation=0)
            document = change(present.content)
            if document is None:
                return
            with suppress(GenerationMoved):
                self.objects.write(self.bucket, name, json_bytes(document), if_generation=present.generation)
                return
        raise GenerationMoved(self._uri(name), 0)


def damage(error: ValueError | ObjectTooLarge) -> str:
    """What is wrong with an object that cannot be read."""
    return f"more than {error.max_bytes} bytes" if isinstance(error, ObjectTooLarge) else str(error)
