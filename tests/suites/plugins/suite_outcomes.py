"""A plugin of pytest that runs in the environment of a client's suite: it appends each test's outcome to a file.

`python -m tests.suites` loads it with `-p`. That environment lacks this project, so it imports none of it.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_EXCEPTION = re.compile(
    r"^([A-Za-z_][\w.]*: .*|assert .*|[A-Za-z_][\w.]*(?:Error|Exception|NotFound|Timeout))$"
)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append what one phase of a test gave: set-up, call or teardown."""
    if report.when != "call" and report.passed:
        return
    said = "" if report.passed else report.longreprtext
    line = {
        "test": report.nodeid,
        "phase": report.when,
        "outcome": report.outcome,
        "seconds": report.duration,
    }
    _append({**line, "exceptions": list(_exceptions(said)), "text": said[-20_000:]})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Append a file that cannot be collected as a test that failed."""
    if report.failed:
        said = report.longreprtext
        line = {"test": report.nodeid, "phase": "collect", "outcome": "failed", "seconds": 0.0}
        _append({**line, "exceptions": list(_exceptions(said)), "text": said[-20_000:]})


def _append(line: dict[str, object]) -> None:
    with Path(os.environ["SUITE_OUTCOMES"]).open("a", encoding="utf-8") as outcomes:
        outcomes.write(json.dumps(line) + "\n")


def _exceptions(text: str) -> Iterator[str]:
    """The lines of a report that name an exception, without pytest's margin, in their order."""
    for line in text.splitlines():
        stripped = line.removeprefix("E").strip()
        if line.startswith("E  ") and _EXCEPTION.match(stripped):
            yield stripped[:1000]
