"""Reads and writes of one bucket's objects, which all stores share."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from trainmaster.orchestrator.core.documents.codec import encoded, json_bytes, parse_json, with_unknown
from trainmaster.orchestrator.core.errors import (
    DocumentDamaged,
    GenerationMoved,
    ObjectGone,
    ObjectTooLarge,
    RecordDamaged,
)
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.ports.objects import Listed, Objects, Stored

TEXT, NDJSON = "text/plain", "application/x-ndjson"
RACES_MAX = 10
_Document = TypeVar("_Document")


@dataclass(frozen=True, kw_only=True)
class Read(Generic[_Document]):
    """A document as it was read, and the version that a replacement must name: 0 before the first."""

    document: _Document
    version: int = 0
    raw: object = field(default=None, repr=False, compare=False)
    """Its JSON, with what a newer release may have written."""


class Store:
    """One bucket. Like any port, every method of a store may also raise ServiceFailed."""

    _damaged: type[DocumentDamaged | RecordDamaged] = DocumentDamaged

    def __init__(self, objects: Objects, bucket: str) -> None:
        self.objects = objects
        self.bucket = bucket
        self._last: tuple[str, Stored] | None = None

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
    ) -> "Read[_Document | None]":
        """The document of that name; None if it does not exist.

        Raises:
            DocumentDamaged: the object holds something else, or has more than `max_bytes`.
        """
        try:
            stored = self._find(name, max_bytes)
            if stored is None:
                return Read(document=None)
            raw = parse_json(stored.content)
            return Read(document=parse(raw), version=stored.generation, raw=raw)
        except (ValueError, ObjectTooLarge) as error:
            what = f"more than {max_bytes} bytes" if isinstance(error, ObjectTooLarge) else str(error)
            raise self._damaged(self._uri(name), what) from error

    def _replace(
        self,
        name: str,
        before: "Read[Any]",
        document: _Document,
        in_bytes: Callable[[object], bytes] = json_bytes,
        metadata: Mapping[str, str] | None = None,
    ) -> "Read[_Document]":
        """The changed document, if it is still at the version that was read; with what a newer release wrote.

        A write whose response was lost counts as moved: the next attempt finds the document as it was written.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        raw = with_unknown(encoded(document), encoded(before.document), before.raw)
        version = self.objects.write(
            self.bucket, name, in_bytes(raw), if_generation=before.version, metadata=metadata
        )
        return Read(document=document, version=version, raw=raw)

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

    def _latest(self, name: str, max_bytes: int) -> Stored:
        """The object as this store has read or changed it last, empty and of generation 0 without one."""
        last = self._last  # read once: rules that have their turn in parallel share this
        if last is None or last[0] != name:
            stored = self._find_bounded(name, max_bytes) or Stored(content=b"", generation=0)
            last = self._last = name, stored
        return last[1]

    def _change(
        self,
        name: str,
        change: Callable[[bytes], object],
        max_bytes: int,
        *,
        metadata: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        """Write what `change` makes of the existing content, which is empty without any; None: it is newer.

        The content may be older than the object's: then the write fails, and `change` gets the present one.

        Raises:
            GenerationMoved: the object kept changing.
        """
        for _ in range(RACES_MAX):
            present = self._latest(name, max_bytes)
            changed = change(present.content)
            if changed is None:
                return
            content, self._last = changed if isinstance(changed, bytes) else json_bytes(changed), None
            with suppress(GenerationMoved):
                version = self.objects.write(
                    self.bucket,
                    name,
                    content,
                    if_generation=present.generation,
                    metadata=metadata,
                    content_type=content_type,
                )
                self._last = name, Stored(content=content, generation=version)
                return
        raise GenerationMoved(self._uri(name), present.generation)
