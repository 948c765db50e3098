"""Where each socket was opened, for the report of a test that forgot to close one.

`tracemalloc` would tell the same of everything, and makes the tests of servers three times slower.
"""

import re
import socket
import sys
from traceback import StackSummary, walk_stack
from typing import Any

import pytest

FRAMES = 12
_UNCLOSED = re.compile(r"unclosed <socket\.socket fd=(\d+)")

_opened: dict[int, StackSummary] = {}
"""By file descriptor, where it was last opened."""


def remember_places() -> None:
    """From now on, of every socket of this process."""
    opens = socket.socket.__init__

    def remembering(
        self: socket.socket, *args: Any, **named: Any
    ) -> None:  # Any: whatever a socket is made of
        opens(self, *args, **named)
        frames = walk_stack(sys._getframe(1))
        _opened[self.fileno()] = StackSummary.extract(frames, limit=FRAMES, lookup_lines=False)

    setattr(socket.socket, "__init__", remembering)  # noqa: B010 - mypy lets no method be assigned to


def add_places(report: pytest.TestReport) -> None:
    """Say of each unclosed socket that the report names where it was opened, innermost call first."""
    for descriptor in dict.fromkeys(map(int, _UNCLOSED.findall(report.longreprtext))):
        if descriptor in _opened:
            report.sections.append((f"socket {descriptor} was opened", "".join(_opened[descriptor].format())))
