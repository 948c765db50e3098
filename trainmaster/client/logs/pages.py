"""Parts of a long log: its selected end, followed, and any page before it."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.client.errors import Refused
from trainmaster.client.find import Run
from trainmaster.client.logs.follow import RunLog
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import LATE, Selection
from trainmaster.client.logs.tail import Tail, shortened

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

PAGE_LINES, PAGE_CHARS = 200, 4 * 1024 * 1024
SAME_TIME_MAX = 200
"""Lines of one microsecond, among which a page may end. Further ones are left out of the next page."""
CURSOR_MAX_CHARS = 300
LATE_EVERY_S = 10.0
SEARCH_S = 0.7
SLICE = timedelta(seconds=2)
"""The first part of a local search."""
_SEPARATOR = "~"


@dataclass(frozen=True, kw_only=True)
class LogPage:
    """Lines of a log, oldest first. `earlier` is the cursor of the page before; None if these are the first."""

    lines: Sequence[LogLine]
    earlier: str | None
    searched_to: datetime | None = None
    """Where a search is, which another look continues; None if it is done."""


def cursor_of(line: LogLine) -> str:
    """Names the lines before this one."""
    return f"{line.at.astimezone(UTC).isoformat()}{_SEPARATOR}{line.insert_id}"


def read_page(
    clients: "Clients", run: Run, selection: Selection, *, limit: int = PAGE_LINES, before: str | None = None
) -> LogPage:
    """The last `limit` selected lines, or those before a cursor; fewer if they have more than PAGE_CHARS characters.

    Raises:
        Refused: `before` is not a cursor.
        google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: the log cannot be read.
    """
    if before is None:
        lines, has_earlier = RunLog(clients, run, selection).last(limit)
        return _page(lines, limit, has_earlier=has_earlier)
    at, insert_id = parse_cursor(before)
    # The client cuts nanoseconds, which the service compares.
    until = replace(selection, before=at + timedelta(microseconds=1))
    lines, has_earlier = RunLog(clients, run, until).last(limit + SAME_TIME_MAX)
    return _page(_before(lines, at, insert_id), limit, has_earlier=has_earlier)


def _before(lines: Sequence[LogLine], at: datetime, insert_id: str) -> list[LogLine]:
    same = next((n for n, line in enumerate(lines) if line.at == at and line.insert_id == insert_id), None)
    return list(lines[:same]) if same is not None else [line for line in lines if line.at < at]


def _page(lines: Sequence[LogLine], limit: int, *, has_earlier: bool) -> LogPage:
    kept: list[LogLine] = []
    chars = 0
    for line in reversed(lines[-limit:]):
        chars += len(line.text)
        if kept and chars > PAGE_CHARS:
            break
        kept.append(line)
    kept.reverse()
    is_cut = has_earlier or len(kept) < len(lines)
    return LogPage(lines=kept, earlier=cursor_of(kept[0]) if kept and is_cut else None)


def parse_cursor(text: str) -> tuple[datetime, str]:
    """The time and id of a line.

    Raises:
        Refused: it is another text.
    """
    moment, _, insert_id = text.partition(_SEPARATOR)
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not insert_id or len(text) > CURSOR_MAX_CHARS:
        raise Refused(
            f"before: expected the time and id of a line, as `earlier` of another page has it, found {text[:60]!r}"
        )
    return at.astimezone(UTC), insert_id


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
            self._search(stop)
        lines = [*self._found, *self._tail.last(PAGE_LINES)]
        has_earlier = self._until > self._begin or len(lines) > PAGE_LINES
        shown = lines[-PAGE_LINES:]
        return LogPage(
            lines=shown,
            earlier=cursor_of(shown[0]) if shown and has_earlier and self._has_searched else None,
            searched_to=None if self._has_searched else self._until,
        )

    @property
    def _has_searched(self) -> bool:
        return self._until <= self._begin or len(self._found) >= PAGE_LINES

    def _search(self, stop: float) -> None:
        """One slice of time more; the next is as long as this one's pace allows."""
        began = time.monotonic()
        start = max(self._begin, self._until - self._width)
        part = replace(self._selection, since=start, before=self._until)
        lines, _ = RunLog(self._clients, self._new.run, part).last(PAGE_LINES)
        known = {(line.insert_id, line.at) for line in self._found}
        fresh = [shortened(line) for line in lines if (line.insert_id, line.at) not in known]
        self._found = [*fresh, *self._found][-PAGE_LINES:]
        self._until = start
        took, left = time.monotonic() - began, max(stop - time.monotonic(), 0.0)
        self._width = max(SLICE / 20, self._width * min(2.0, max(left, SEARCH_S / 2) / max(took, 0.001)))


def tail_page(tail: Tail, *, has_earlier: bool) -> LogPage:
    """The end of a tail as a page. `has_earlier`: lines exist that were never added to it."""
    lines = tail.last(PAGE_LINES + 1)
    is_cut = has_earlier or tail.left_out or len(lines) > PAGE_LINES
    shown = lines[-PAGE_LINES:]
    return LogPage(lines=shown, earlier=cursor_of(shown[0]) if shown and is_cut else None)


def document_of(page: LogPage, run_id: str) -> dict[str, object]:
    """The page as the console's API returns it: documents of schemas/log_line.v1.schema.json, and the cursor."""
    return {"run_id": run_id, "lines": _documents(page.lines), "earlier": page.earlier}


def _documents(lines: Iterable[LogLine]) -> list[dict[str, object]]:
    return [line.document for line in lines]
