"""The place where each socket was opened, for the report of a test that forgot to close one.

`tracemalloc` would report the same for every object, but makes the tests of servers three times slower.
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
"""The stack at which each file descriptor was last opened."""


def record_origins() -> None:
    """Record where each socket of this process is opened, from now on."""
    opens = socket.socket.__init__

    def remembering(
        self: socket.socket, *args: Any, **named: Any
    ) -> None:  # Any: the arguments of any socket
        opens(self, *args, **named)
        frames = walk_stack(sys._getframe(1))
        _opened[self.fileno()] = StackSummary.extract(frames, limit=FRAMES, lookup_lines=False)

    setattr(socket.socket, "__init__", remembering)  # noqa: B010 - mypy rejects assignments to methods


def add_origins(report: pytest.TestReport) -> None:
    """Add to the report where each unclosed socket was opened, innermost call first."""
    for descriptor in dict.fromkeys(map(int, _UNCLOSED.findall(report.longreprtext))):
        if descriptor in _opened:
            report.sections.append((f"socket {descriptor} was opened", "".join(_opened[descriptor].format())))
