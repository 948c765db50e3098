"""Counts the runs of each day by the names in the index: one storage operation for each thousand runs."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from trainmaster.client.runs.listing import SCANNED_MAX
from trainmaster.orchestrator.core.runs.index import INDEX_PREFIX, index_object, index_parts

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class RunsOfDay:
    """How many runs were recorded on a day (UTC)."""

    date: date
    runs: int


@dataclass(frozen=True, kw_only=True)
class Days:
    """Successive days, oldest first; with `complete` False the oldest had more runs than are counted."""

    days: tuple[RunsOfDay, ...]
    complete: bool

    @property
    def most(self) -> int:
        """Runs of the day that had the most."""
        return max((each.runs for each in self.days), default=0)

    def followed_by(self, later: "Days") -> "Days":
        """These days and then those."""
        return Days(days=(*self.days, *later.days), complete=self.complete and later.complete)


def runs_per_day(clients: "Clients", first: date, last: date) -> Days:
    """The runs of each day from `first` to `last` (UTC), as far as the newest SCANNED_MAX of them show.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the index cannot be listed.
    """
    dates = [first + timedelta(days=ago) for ago in range((last - first).days + 1)]
    listed = clients.storage.list_blobs(
        clients.context.ledger_bucket,
        prefix=INDEX_PREFIX,
        start_offset=_first_before(last + timedelta(days=1)),
        end_offset=_first_before(first),
        fields="items(name),nextPageToken",
    )
    names = [each.name for each in islice(listed, SCANNED_MAX)]
    counts = Counter(found for name in names if (found := _date(name)) is not None)
    counted = tuple(RunsOfDay(date=each, runs=counts[each]) for each in dates)
    return Days(days=counted, complete=len(names) < SCANNED_MAX)


def _first_before(day: date) -> str:
    """Sorts before every row that is older than the day, and after all others."""
    return index_object(datetime.combine(day, time.min, UTC) - _MICROSECOND, "")


def _date(object_name: str) -> date | None:
    try:
        return index_parts(object_name)[0].date()
    except ValueError:
        return None
