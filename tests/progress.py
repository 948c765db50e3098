"""Progress by part, for `make test`: a part is a folder under tests/."""

import time
from collections import Counter

import pytest

_SILENT_AT_MOST_S = 15.0


class Progress:
    """Prints each finished part, each failure as it happens, and the progress in between."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._began = self._said_at = time.monotonic()
        self._all: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # xdist's controller collects nothing
            self._count([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Every worker collects the same tests."""
        self._count(ids)

    def _count(self, ids: list[str]) -> None:
        self._all = Counter(map(_part, ids))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no letter for a test that passed or was skipped."""
        if report.passed:
            return ("passed" if report.when == "call" else "", "", "")
        return ("skipped", "", "") if report.skipped else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = _part(report.nodeid)
        if report.failed:
            self._failed[part] += 1
            self._say(f"{report.outcome} in {report.when}: {report.nodeid}")
        if report.when != "teardown":
            return
        self._done[part] += 1
        if self._done[part] == self._all[part]:
            failed = f", {self._failed[part]} failed" if self._failed[part] else ""
            self._say(f"{part}: all {self._all[part]} tests are done{failed}")
        elif time.monotonic() - self._said_at >= _SILENT_AT_MOST_S:
            self._say(f"{self._done.total()} of {self._all.total()} tests; now in {part}")

    def _say(self, line: str) -> None:
        self._said_at = time.monotonic()
        minutes, seconds = divmod(int(self._said_at - self._began), 60)
        self._reporter.write_line(f"{minutes:>3}:{seconds:02}  {line}")


def _part(nodeid: str) -> str:
    return nodeid.split("/")[1]
