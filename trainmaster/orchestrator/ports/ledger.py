"""What users and the service read and change of runs: the records, and what is kept beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState


@dataclass(frozen=True, kw_only=True)
class Held:
    """A record as it was read, and the version that a replacement must name."""

    record: RunRecord
    version: int


@dataclass(frozen=True, kw_only=True)
class SubmittedObject:
    """Where a request lies as it was written, and the hash of that object."""

    uri: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Marker:
    """A run that has not ended, or whose notice is not out."""

    run_id: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class DropStatus:
    """Where the latest drop of one object name stands: schemas/drop_status.v1.schema.json.

    `record_generation` is that of the record it was made from, 0 for an order, which has none. `reason` is why the run
    waits, or why it failed.
    """

    dropped_name: str
    generation: int
    run_id: str
    state: RunState
    updated_at: datetime
    record_uri: str
    record_generation: int = 0
    reason: str | None = None
    report_uri: str | None = None
    model_uri: str | None = None
    problems: tuple[str, ...] = ()


class Ledger(Protocol):
    """The run records and what is kept beside them. Safe to use from several threads and processes at once."""

    def find(self, run_id: str) -> Held | None:
        """The record, or None when there is none.

        Raises:
            RecordDamaged: the object holds something else.
        """
        ...

    def create(self, record: RunRecord) -> Held:
        """The new record. An answer that was lost on its way, and then repeated, still counts as ours.

        Raises:
            RecordExists: another attempt wrote one first.
        """
        ...

    def replace(self, held: Held, record: RunRecord) -> Held:
        """The changed record, if it is still at `held.version`. As for `create`, a lost answer still counts.

        Raises:
            RecordMoved: another attempt changed it first.
        """
        ...

    def mark_active(self, run_id: str) -> None:
        """Put the run where the sweep looks. Safe to repeat."""
        ...

    def unmark(self, run_id: str) -> None:
        """Take the run from where the sweep looks. Safe to repeat."""
        ...

    def active(self) -> Iterator[Marker]:
        """Every marked run."""
        ...

    def swept_to(self) -> Marker | None:
        """The last run that a sweep without time for all came to; None when the last one came to the end."""
        ...

    def keep_swept_to(self, marker: Marker | None) -> None:
        """Keep it for the next sweep. Two sweeps at once may overwrite each other's: it is no more than a hint."""
        ...

    def tell_status(self, status: DropStatus) -> None:
        """Write where the drop stands, unless something later is written there.

        Later is a newer generation of the drop, or of the same drop's record. Safe to repeat, in any order.
        """
        ...

    def keep_submitted(self, run_id: str, document: Mapping[str, object]) -> SubmittedObject:
        """Keep the request as it was written. Safe to repeat: the same document is the same object."""
        ...

    def report(self, run_id: str, report: Mapping[str, object]) -> str:
        """Keep the rejection report and give its URI. Safe to repeat."""
        ...

    def unreport(self, run_id: str) -> None:
        """Remove the rejection report. Safe to repeat."""
        ...

    def record_uri(self, run_id: str) -> str:
        """Where the record lies."""
        ...
