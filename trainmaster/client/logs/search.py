"""The selected end of a run's log: searched back part by part, and followed."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.client.find import Run
from trainmaster.client.logs.follow import RunLog
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.pages import PAGE_LINES, LogPage, end_page
from trainmaster.client.logs.read import LATE, LATE_EVERY_S, Selection
from trainmaster.client.logs.tail import Tail, shortened_line

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

SEARCH_S = 0.7
SLICE, SLICE_MIN = timedelta(seconds=2), timedelta(seconds=0.1)
"""The first part of a local search, and the shortest."""


class SelectedTail:
    """The selected end of a run's log. Every call of `look` reads what is new; not for two threads at once.

    The local stack searches line by line, so one call searches back for SEARCH_S seconds, and the next one continues.
    Cloud Logging searches all of the log at once.
    """

    def __init__(self, clients: "Clients", run: Run, selection: Selection) -> None:
        self._clients, self._selection = clients, selection
        self._begin = run.record.history[0].at
        now = datetime.now(UTC)
        # From here on `_new` reads.
        self._until = min(now, run.record.history[-1].at + LATE) if run.record.ended else now - LATE
        self._width = SLICE if clients.context.state is not None else self._until - self._begin
        fresh = replace(selection, since=max(self._until, selection.since or self._until))
        self._new = RunLog(clients, run, fresh, late_every_s=LATE_EVERY_S)
        self._found: list[LogLine] = []
        self._tail = Tail()

    def look(self) -> LogPage:
        """The last PAGE_LINES of them, as far as they are found.

        Raises:
            google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: a service does not answer.
        """
        if not self._new.is_over:
            self._tail.add(self._new.look())
        stop = time.monotonic() + SEARCH_S
        while not self._has_searched and time.monotonic() < stop:
            self._search()
        lines = [*self._found, *self._tail.last(PAGE_LINES)]
        page = end_page(lines, has_earlier=self._until > self._begin)
        return page if self._has_searched else replace(page, earlier=None, searched_to=self._until)

    @property
    def _has_searched(self) -> bool:
        return self._until <= self._begin or len(self._found) >= PAGE_LINES

    def _search(self) -> None:
        """One slice of time more; the next is twice as long, or half as long after a slow one."""
        began = time.monotonic()
        start = max(self._begin, self._until - self._width)
        part = replace(self._selection, since=start, before=self._until)
        lines, _ = RunLog(self._clients, self._new.run, part).last(PAGE_LINES)
        known = {(line.insert_id, line.at) for line in self._found}
        fresh = [shortened_line(line) for line in lines if (line.insert_id, line.at) not in known]
        self._found = [*fresh, *self._found][-PAGE_LINES:]
        self._until = start
        is_slow = time.monotonic() - began > SEARCH_S / 2
        self._width = max(self._width / 2, SLICE_MIN) if is_slow else self._width * 2
