"""The last lines of a log, in bounded memory."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import LINES_MAX
from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.documents.faults import cut

TAIL_LINES, TAIL_CHARS = 2000, 1024 * 1024
LINE_MAX_CHARS = 4000
"""Of a kept line; an entry of Cloud Logging may have 256 KiB."""


class Tail:
    """Keeps the last lines that were added, without their payloads, the text of each cut at LINE_MAX_CHARS."""

    def __init__(self, lines: int = TAIL_LINES, chars: int = TAIL_CHARS) -> None:
        self._most, self._most_chars = lines, chars
        self._lines: deque[LogLine] = deque()
        self._chars = 0
        self.left_out = False
        """Whether an earlier line was forgotten."""

    def add(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            kept = shortened_line(line)
            self._lines.append(kept)
            self._chars += len(kept.text)
            while len(self._lines) > self._most or self._chars > self._most_chars:
                self._chars -= len(self._lines.popleft().text)
                self.left_out = True

    def last(self, count: int) -> Sequence[LogLine]:
        """The last `count` of them, oldest first."""
        skipped = max(0, len(self._lines) - count)
        return [line for place, line in enumerate(self._lines) if place >= skipped]


def left_out_hint(lines: Sequence[LogLine], limit: int) -> str:
    """How to see more than the last `limit` lines, of which `lines` are the oldest that were read; oldest first."""
    first, last = lines[0].at, lines[-1].at
    # A line that was left out may have the time of the first one, of which the client drops the nanoseconds: the first
    # one is repeated, unless that would repeat all.
    before = first + timedelta(microseconds=1 if last > first else -1)
    more = f" To see more than {limit}: --limit {min(10 * limit, LINES_MAX)}." if limit < LINES_MAX else ""
    return f"Earlier lines are left out.{more} To see those before: --before {encoded_time(before)}"


def shortened_line(line: LogLine) -> LogLine:
    """The line with its text alone, at most LINE_MAX_CHARS of it, and the severity that it says itself."""
    return replace(line, payload=cut(line.text, LINE_MAX_CHARS), severity=line.level)
