"""Views of runs for users: their rows in the index, and the statuses of their drops and messages.

A row is one small object, which a listing reads without its content; a status is one object per name.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.runs import drop_status
from trainmaster.orchestrator.core.runs.index import IndexRow, index_object, row_metadata
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.core.runs.same_request import is_saved_again
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES, MAX_STATUS_BYTES
from trainmaster.orchestrator.ports.objects import Stored
from trainmaster.orchestrator.stores.store import TEXT, Store

# Any: JSON.
_Status = Mapping[str, Any]


class DropStatuses(Store):
    """The statuses, for one delivery: the last one read or written is cached."""

    def write(self, status: drop_status.DropStatus) -> None:
        """Write the status, unless the object is newer or the same. Safe to repeat, in any order.

        Raises:
            GenerationMoved: the object kept changing.
        """

        def change(present: _Status) -> object:
            after = drop_status.status_after(present, status)
            return None if after is None else drop_status.with_unknown_fields(present, after)

        self._change_status(status.object_name, change)

    def shows(self, status: drop_status.DropStatus) -> bool:
        """Whether the object is this status, or a newer one of the same run. Costs one read, or none after `find`."""
        present = self.find(status.object_name)
        return present.get("run_id") == status.run_id and drop_status.status_after(present, status) is None

    def find(self, name: str) -> _Status:
        """The status, as this delivery has read or written it last; empty without a status. Costs one read at most.

        A status never returns to an older version, so an older answer can only lead to a write that finds the newer one.
        """
        return drop_status.parse_status(self._latest(name, MAX_STATUS_BYTES).content)

    def note_repetition(self, source: Source, now: datetime) -> None:
        """Write that this generation of a file asks for the same as the one that the status shows. Safe to repeat.

        Raises:
            GenerationMoved: the object kept changing.
        """
        self._change_status(
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

        self._change_status(drop.object_name, change)

    def _change_status(self, name: str, change: Callable[[_Status], object]) -> None:
        self._change(name, lambda content: change(drop_status.parse_status(content)), MAX_STATUS_BYTES)


GENERATION_MAX_CHARS = 19
"""Generations are 64-bit integers."""


class Index(Store):
    """The index, for one delivery: the last row that it wrote is cached.

    A row's content is the generation of its record, so that a row can be ordered by one read.
    """

    def put(self, row: IndexRow, *, is_first: bool = False) -> None:
        """Write the row, unless the present one is newer or the same. Safe to repeat, in any order.

        `is_first`: most likely the run has no row yet, so none is read first.

        Raises:
            GenerationMoved: the row kept changing.
        """
        name, content = index_object(row.created_at, row.run_id), str(row.generation).encode()
        if is_first and (self._last is None or self._last[0] != name):
            self._last = name, Stored(content=b"", generation=0)

        def change(present: bytes) -> bytes | None:
            is_row = present.isdigit() and len(present) <= GENERATION_MAX_CHARS
            return None if is_row and int(present) >= row.generation else content

        self._change(name, change, MAX_MARK_BYTES, metadata=row_metadata(row), content_type=TEXT)
