"""What every store does with the objects of its bucket."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from trainmaster.orchestrator.core.errors import DocumentDamaged, GenerationMoved, ObjectGone
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.ports.objects import Objects, Stored, json_bytes

TEXT = "text/plain"
RACES_MAX = 10
_Document = TypeVar("_Document")


class Store:
    """One bucket. Like any port, every method of a store may also raise ServiceFailed."""

    def __init__(self, objects: Objects, bucket: str) -> None:
        self.objects = objects
        self.bucket = bucket

    def _uri(self, name: str) -> str:
        return object_uri(self.bucket, name)

    def _find(self, name: str) -> Stored | None:
        try:
            return self.objects.read(self.bucket, name)
        except ObjectGone:
            return None

    # Any: JSON; the parser checks it.
    def _parsed(self, name: str, parse: Callable[[Any], _Document]) -> tuple[_Document | None, int]:
        """The document of that name and its generation; None and 0 if it does not exist.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        stored = self._find(name)
        if stored is None:
            return None, 0
        try:
            return parse(json.loads(stored.content)), stored.generation
        except ValueError as error:
            raise DocumentDamaged(self._uri(name), str(error)) from error

    def _write_once(self, name: str, document: object) -> None:
        """Write the document if no object exists; the first one stays."""
        with suppress(GenerationMoved):
            self.objects.write(self.bucket, name, json_bytes(document), if_generation=0)

    def _write_newer(self, name: str, document: object, is_newer: Callable[[bytes], bool]) -> None:
        """Write the document, unless `is_newer` is true for the existing content.

        Raises:
            GenerationMoved: the object kept changing.
        """
        content = json_bytes(document)
        for _ in range(RACES_MAX):
            present = self._find(name)
            if present is not None and is_newer(present.content):
                return
            with suppress(GenerationMoved):
                generation = present.generation if present is not None else 0
                self.objects.write(self.bucket, name, content, if_generation=generation)
                return
        raise GenerationMoved(self._uri(name), 0)
