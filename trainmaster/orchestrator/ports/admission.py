"""What admission needs of the world: the queue, the slots of limits, and the marks of what was started.

As with every port, any of them may also raise ServiceFailed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from trainmaster.orchestrator.core.admission.caps import Counted
from trainmaster.orchestrator.core.admission.queue import Place


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A taken slot as it was read, and the version that whoever frees it or takes it over must name.

    `holder` is a run's id.
    """

    limit: str
    number: int
    holder: str
    version: int
    taken_at: datetime

    @property
    def name(self) -> str:
        return f"{self.limit}/{self.number}"


class Queue(Protocol):
    """Who waits. A record says the same; where they differ, the record counts."""

    def places(self) -> Sequence[Place]:
        """Every place, of all regions, in any order; what cannot be read as one is left out."""
        ...

    def put(self, place: Place) -> None:
        """Write the place, or write it over. Safe to repeat."""
        ...

    def remove(self, place: Place) -> None:
        """Take the place away. Safe to repeat."""
        ...


class Slots(Protocol):
    """Which run holds which slot of a limit; changed only by compare-and-set."""

    def taken(self, limit: str) -> Sequence[Slot]:
        """Every taken slot of the limit, by number."""
        ...

    def take(self, limit: str, number: int, run_id: str, *, instead_of: Slot | None = None) -> str:
        """The slot, now the run's: a free one, or one that is still as `instead_of` was read.

        The answer is the slot's name at the version just written, LIMIT/NUMBER@VERSION, which `free` wants.

        Raises:
            GenerationMoved: it is not so any more; perhaps an answer was lost, and the slot is the run's.
        """
        ...

    def free(self, held: str) -> None:
        """Give the slot back, if it is still as `take` left it. Safe to repeat, and while others take slots.

        A slot that was taken again meanwhile stays, whoever took it: the same run may need it for its next job.
        """
        ...


class Starts(Protocol):
    """Marks of the runs that were started, for the caps, and which caps were told of."""

    def of_day(self, day: date) -> Sequence[Counted]:
        """Every mark of the day (UTC)."""
        ...

    def of_hour(self, moment: datetime) -> Sequence[Counted]:
        """Every mark of the hour (UTC) in which that moment lies."""
        ...

    def mark(self, run_id: str, at: datetime, cost: Decimal | None) -> None:
        """Mark the run as started. Safe to repeat: the first mark of an hour stays."""
        ...

    def unmark(self, counted: Counted) -> None:
        """Take the mark away. Safe to repeat."""
        ...

    def forget(self, before: date, most: int) -> int:
        """Take away at most so many marks of days before that one, the oldest first; how many they were."""
        ...

    def was_told(self, window: str) -> bool:
        """Whether it was told that this cap was reached."""
        ...

    def keep_told(self, window: str, document: Mapping[str, object]) -> None:
        """Write down that it was told. Safe to repeat."""
        ...
