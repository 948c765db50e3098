"""The index of runs: one small object each, which a listing reads without its content."""

from contextlib import suppress

from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.runs.index_row import (
    IndexRow,
    index_object,
    row_metadata,
)
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES
from trainmaster.orchestrator.ports.objects import Objects
from trainmaster.orchestrator.stores.store import RACES_MAX, TEXT, Store

GENERATION_MAX_CHARS = 19
"""Generations are 64-bit integers."""


class Index(Store):
    """The index, for one delivery: the generation of the last row that it wrote is cached.

    A row's content is the generation of its record, so that a row can be ordered by one read.
    """

    def __init__(self, objects: Objects, bucket: str) -> None:
        super().__init__(objects, bucket)
        self._last: tuple[str, int, int] | None = None

    def add(self, row: IndexRow) -> None:
        """Write the row, if the run has none."""
        with suppress(GenerationMoved):
            self._write(row, 0)

    def put(self, row: IndexRow, *, is_first: bool = False) -> None:
        """Write the row, unless the present one is newer or the same. Safe to repeat, in any order.

        `is_first`: most likely the run has no row yet, so none is read first.

        Raises:
            GenerationMoved: the row kept changing.
        """
        name = index_object(row.created_at, row.run_id)
        last = self._last  # read once: rules that have their turn in parallel share this
        if last is not None and last[0] == name:
            _, present, version = last
        else:
            present, version = (0, 0) if is_first else self._present(name)
        for _ in range(RACES_MAX):
            if present >= row.generation:
                return
            with suppress(GenerationMoved):
                self._write(row, version)
                return
            present, version = self._present(name)
        raise GenerationMoved(self._uri(name), version)

    def _write(self, row: IndexRow, version: int) -> None:
        name, content = index_object(row.created_at, row.run_id), str(row.generation).encode()
        written = self.objects.write(
            self.bucket, name, content, if_generation=version, metadata=row_metadata(row), content_type=TEXT
        )
        self._last = name, row.generation, written

    def _present(self, name: str) -> tuple[int, int]:
        """The generations of the row's record and of the row; the former is 0 if it cannot be read."""
        stored = self._find_bounded(name, MAX_MARK_BYTES)
        if stored is None:
            return 0, 0
        text = stored.content
        is_row = text.isdigit() and len(text) <= GENERATION_MAX_CHARS
        return int(text) if is_row else 0, stored.generation
