"""Views of runs for users: their rows in the index, and the statuses of their drops and messages.

A row is one small object, which a listing reads without its content; a status is one object per name.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.codec import json_bytes
from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.runs import drop_status
from trainmaster.orchestrator.core.runs.index import IndexRow, index_object, row_metadata
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.core.runs.same_request import is_saved_again
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES, MAX_STATUS_BYTES
from trainmaster.orchestrator.ports.objects import Objects, Stored
from trainmaster.orchestrator.stores.store import RACES_MAX, Store

# Any: JSON.
_Status = Mapping[str, Any]
_ABSENT = Stored(content=b"", generation=0)


class DropStatuses(Store):
    """The statuses, for one delivery: the last one read or written is cached."""

    def __init__(self, objects: Objects, bucket: str) -> None:
        super().__init__(objects, bucket)
        self._last: tuple[str, _Status, int] | None = None

    def write(self, status: drop_status.DropStatus) -> None:
        """Write the status, unless the object is newer or the same. Safe to repeat, in any order.

        Raises:
            GenerationMoved: the object kept changing.
        """

        def change(present: _Status) -> object:
            after = drop_status.status_after(present, status)
            return None if after is None else drop_status.with_unknown_fields(present, after)

        self._change(status.object_name, change)

    def shows(self, status: drop_status.DropStatus) -> bool:
        """Whether the object is this status, or a newer one of the same run. Costs one read, or none after `find`."""
        present = self.find(status.object_name)
        return present.get("run_id") == status.run_id and drop_status.status_after(present, status) is None

    def find(self, name: str) -> _Status:
        """The status, as this delivery has read or written it last; empty without a status. Costs one read at most.

        A status never returns to an older version, so an older answer can only lead to a write that finds the newer one.
        """
        return self._latest(name)[0]

    def note_repetition(self, source: Source, now: datetime) -> None:
        """Write that this generation of a file asks for the same as the one that the status shows. Safe to repeat.

        Raises:
            GenerationMoved: the object kept changing.
        """
        self._change(
            drop_status.status_object_of(source),
            lambda present: drop_status.status_after_repetition(present, source, now),
        )

    def write_failure(self, drop: drop_status.DropStatus, source: Source, error: Exception) -> None:
        """Write that a delivery failed. `drop` is the first status of a drop that has none, which `source` is about.

        Raises:
            GenerationMoved: the object kept changing.
        """

        def change(present: _Status) -> object:
            return drop_status.status_after_failure(
                present, drop, error, is_repetition=is_saved_again(present, source)
            )

        self._change(drop.object_name, change)

    def _change(self, name: str, change: Callable[[_Status], object]) -> None:
        for _ in range(RACES_MAX):
            present, generation = self._latest(name)
            changed = change(present)
            if changed is None:
                return
            content = json_bytes(changed)
            with suppress(GenerationMoved):
                written = self.objects.write(self.bucket, name, content, if_generation=generation)
                self._last = name, drop_status.parse_status(content), written
                return
            self._last = None
        raise GenerationMoved(self._uri(name), generation)

    def _latest(self, name: str) -> tuple[_Status, int]:
        last = self._last  # read once: rules that have their turn in parallel share this
        if last is None or last[0] != name:
            stored = self._find_bounded(name, MAX_STATUS_BYTES) or _ABSENT
            last = self._last = name, drop_status.parse_status(stored.content), stored.generation
        return last[1], last[2]


GENERATION_MAX_CHARS = 19
"""Generations are 64-bit integers."""


class Index(Store):
    """The index, for one delivery: the generation of the last row that it wrote is cached.

    A row's content is the generation of its record, so that a row can be ordered by one read.
    """

    def __init__(self, objects: Objects, bucket: str) -> None:
        super().__init__(objects, bucket)
        self._last: tuple[str, int, int] | None = None

    def put(self, row: IndexRow, *, is_first: bool = False) -> None:
        """Write the row, unless the present one is newer or the same. Safe to repeat, in any order.

        `is_first`: most likely the run has no row yet, so none is read first.

        Raises:
            GenerationMoved: the row kept changing.
        """
        name, content = index_object(row.created_at, row.run_id), str(row.generation).encode()
        last = self._last  # read once: rules that have their turn in parallel share this
        if last is not None and last[0] == name:
            _, present, version = last
        else:
            present, version = (0, 0) if is_first else self._present(name)
        for _ in range(RACES_MAX):
            if present >= row.generation:
                return
            with suppress(GenerationMoved):
                written = self._mark(name, row_metadata(row), content=content, if_generation=version)
                self._last = name, row.generation, written
                return
            present, version = self._present(name)
        raise GenerationMoved(self._uri(name), version)

    def _present(self, name: str) -> tuple[int, int]:
        """The generations of the row's record and of the row; the former is 0 if it cannot be read."""
        stored = self._find_bounded(name, MAX_MARK_BYTES) or _ABSENT
        is_row = stored.content.isdigit() and len(stored.content) <= GENERATION_MAX_CHARS
        return int(stored.content) if is_row else 0, stored.generation
