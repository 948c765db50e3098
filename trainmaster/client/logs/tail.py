"""The last lines of a log, in bounded memory."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmaster.client.logs.line import LogLine
from trainmaster.orchestrator.core.documents.quoting import cut

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
            kept = shortened(line)
            self._lines.append(kept)
            self._chars += len(kept.text)
            while len(self._lines) > self._most or self._chars > self._most_chars:
                self._chars -= len(self._lines.popleft().text)
                self.left_out = True

    def last(self, count: int) -> Sequence[LogLine]:
        """The last `count` of them, oldest first."""
        skipped = max(0, len(self._lines) - count)
        return [line for place, line in enumerate(self._lines) if place >= skipped]


def shortened(line: LogLine) -> LogLine:
    """The line with its text alone, at most LINE_MAX_CHARS of it."""
    return replace(line, payload=cut(line.text, LINE_MAX_CHARS))
