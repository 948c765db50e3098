"""Pages of a long log: its end, and any page before a line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused
from trainmaster.client.find import Run
from trainmaster.client.logs.follow import RunLog
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import Selection

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

PAGE_LINES, PAGE_CHARS = 200, 4 * 1024 * 1024
SAME_TIME_MAX = 200
"""Lines of one microsecond, among which a page may end. Further ones are left out of the next page."""
CURSOR_MAX_CHARS = 300
_SEPARATOR = "~"


@dataclass(frozen=True, kw_only=True)
class LogPage:
    """Lines of a log, oldest first. `earlier` is the cursor of the page before; None if these are the first."""

    lines: Sequence[LogLine]
    earlier: str | None


def cursor_of(line: LogLine) -> str:
    """Names the lines before this one."""
    return f"{line.at.astimezone(UTC).isoformat()}{_SEPARATOR}{line.insert_id}"


def read_page(
    clients: "Clients", run: Run, selection: Selection, *, limit: int = PAGE_LINES, before: str | None = None
) -> LogPage:
    """The last `limit` selected lines, or those before a cursor; fewer if they have more than PAGE_CHARS characters.

    Raises:
        ClientRefused: `before` is not a cursor.
        google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: the log cannot be read.
    """
    if before is None:
        lines, has_earlier = RunLog(clients, run, selection).last(limit)
        return _page(lines, limit, has_earlier=has_earlier)
    at, insert_id = parse_cursor(before)
    # The client cuts nanoseconds, which the service compares.
    until = replace(selection, before=at + timedelta(microseconds=1))
    lines, has_earlier = RunLog(clients, run, until).last(limit + SAME_TIME_MAX)
    return _page(_lines_before(lines, at, insert_id), limit, has_earlier=has_earlier)


def _lines_before(lines: Sequence[LogLine], at: datetime, insert_id: str) -> list[LogLine]:
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
        ClientRefused: it is another text.
    """
    moment, _, insert_id = text.partition(_SEPARATOR)
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not insert_id or len(text) > CURSOR_MAX_CHARS:
        raise ClientRefused(
            f"before: expected the time and id of a line, as `earlier` of another page has it, found {text[:60]!r}"
        )
    return at.astimezone(UTC), insert_id


def tail_page(lines: Sequence[LogLine], *, has_earlier: bool) -> LogPage:
    """The last PAGE_LINES lines as a page. `has_earlier`: there are more than these lines before it."""
    is_cut = has_earlier or len(lines) > PAGE_LINES
    shown = list(lines)[-PAGE_LINES:]
    return LogPage(lines=shown, earlier=cursor_of(shown[0]) if shown and is_cut else None)
