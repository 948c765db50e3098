"""Counts the runs of each day by the names in the index: one storage operation for each thousand runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from trainmaster.client.runs.listing import SCANNED_MAX
from trainmaster.orchestrator.core.runs.index_row import INDEX_PREFIX, index_object, index_parts

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Day:
    """How many runs were recorded on a day (UTC)."""

    date: date
    runs: int


@dataclass(frozen=True, kw_only=True)
class Days:
    """The last days, oldest first; with `complete` False the oldest of them had more runs than are counted."""

    days: Sequence[Day]
    complete: bool

    @property
    def most(self) -> int:
        """Runs of the day that had the most."""
        return max((each.runs for each in self.days), default=0)


def runs_per_day(clients: "Clients", now: datetime, days: int) -> Days:
    """The runs of the last `days` days, today included, as far as the newest SCANNED_MAX show them.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the index cannot be listed.
    """
    today = now.astimezone(UTC).date()
    dates = [today - timedelta(days=ago) for ago in reversed(range(days))]
    first = datetime.combine(dates[0], datetime.min.time(), UTC)
    listed = clients.storage.list_blobs(
        clients.context.ledger_bucket,
        prefix=INDEX_PREFIX,
        end_offset=index_object(first - _MICROSECOND, ""),
        fields="items(name),nextPageToken",
    )
    names = [each.name for each in islice(listed, SCANNED_MAX)]
    counts = Counter(found for name in names if (found := _date(name)) is not None)
    return Days(days=[Day(date=each, runs=counts[each]) for each in dates], complete=len(names) < SCANNED_MAX)


def _date(object_name: str) -> date | None:
    try:
        return index_parts(object_name)[0].date()
    except ValueError:
        return None
