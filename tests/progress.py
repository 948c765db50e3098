"""Lines of progress by part, for `make test`: a part is a folder under tests/."""

import time
from collections import Counter

import pytest

_QUARTERS = 4


class Progress:
    """Prints a line whenever a quarter of a folder's tests is done, and each failure when it happens."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._began = time.monotonic()
        self._all: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # xdist's controller collects nothing
            self._count([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Every worker collects the same."""
        self._count(ids)

    def _count(self, ids: list[str]) -> None:
        self._all = Counter(map(_part, ids))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for a test that passed or was skipped."""
        if report.passed:
            return ("passed" if report.when == "call" else "", "", "")
        return ("skipped", "", "") if report.skipped else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = _part(report.nodeid)
        if report.failed:
            self._failed[part] += 1
            self._say(f"{report.outcome} in {report.when}: {report.nodeid}")
        if report.when == "teardown":
            self._done[part] += 1
            done, all_of_it = self._done[part], self._all[part]
            if done == all_of_it or done * _QUARTERS // all_of_it > (done - 1) * _QUARTERS // all_of_it:
                failed = f", {self._failed[part]} failed" if self._failed[part] else ""
                self._say(f"{part:<10}{done:>6} of {all_of_it}{failed}")

    def _say(self, line: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self._reporter.write_line(f"{minutes:>3}:{seconds:02}  {line}")


def _part(nodeid: str) -> str:
    return nodeid.split("/")[1]
