"""The result of each test of a suite: passed, refused, wrong or skipped, with the cause of each failure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAILURES = ("refused", "wrong")
KINDS = ("passed", *FAILURES, "skipped")
CAUSE_MAX = 160

_REFUSAL = re.compile(
    r"not imitated|is not supported (?:here|by th(?:is|e local))|emulator does not support|No such method in this emulator"
)
"""The stack's own sentence about something that it does not imitate."""
_CHANGING = re.compile(r"https?://\S+|[0-9a-f]{8}-[0-9a-f-]{20,}|\d{3,}|0x[0-9a-f]+|(?<=/)[\w.-]*\d[\w.-]*")
"""Words that differ between runs of one test: addresses, unique names, numbers."""
_PATHS = re.compile(r"\[[^\]]*\]?|\S*/\S*")
"""What also differs between tests with one cause: lists and names of objects."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One test's result. `cause` is empty for one that passed."""

    test: str
    kind: str
    cause: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Score:
    """The results of one suite on one day.

    `counts` has the number of tests of each kind; `causes` the failures, by kind and by cause, each with the tests.
    """

    suite: str
    version: str
    commit: str
    date: str
    ended: str
    counts: Mapping[str, int]
    causes: Mapping[str, Mapping[str, Sequence[str]]]


def count_of(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many tests are of each kind."""
    counted = Counter(outcome.kind for outcome in outcomes)
    return {kind: counted[kind] for kind in KINDS}


def causes_of(outcomes: Sequence[Outcome]) -> dict[str, dict[str, list[str]]]:
    """The tests that failed, by kind and cause, most frequent cause first."""
    causes: dict[str, dict[str, list[str]]] = {kind: {} for kind in FAILURES}
    for outcome in outcomes:
        if outcome.kind in FAILURES:
            causes[outcome.kind].setdefault(outcome.cause, []).append(outcome.test)
    return {
        kind: dict(sorted(tests.items(), key=lambda cause: (-len(cause[1]), cause[0])))
        for kind, tests in causes.items()
    }


def read_outcomes(path: Path) -> tuple[Outcome, ...]:
    """The results in the file of the plugin `suite_outcomes`; the worst phase of a test decides."""
    phases: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        phase = json.loads(line)
        phases.setdefault(phase["test"], []).append(phase)
    return tuple(_outcome_of(test, reports) for test, reports in phases.items())


def _outcome_of(test: str, reports: Iterable[Mapping[str, Any]]) -> Outcome:
    reports = list(reports)
    seconds = round(sum(report["seconds"] for report in reports), 1)
    for report in reports:
        if report["outcome"] == "failed":
            kind, cause = _cause_of(report)
            return Outcome(test=test, kind=kind, cause=cause, seconds=seconds)
    last = reports[-1]
    cause = _last_words(last["text"]) if last["outcome"] == "skipped" else ""
    return Outcome(test=test, kind=last["outcome"], cause=cause, seconds=seconds)


def _cause_of(report: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of a failure and its cause: the stack's sentence if the report has one, else the last exception."""
    exceptions: list[str] = report["exceptions"]
    refusals = [line for line in exceptions if _REFUSAL.search(line)]
    if refusals:
        return "refused", _without_changing(refusals[-1])
    last = exceptions[-1] if exceptions else _last_words(report["text"])
    return "wrong", _without_changing(_PATHS.sub("…", last))


def _without_changing(line: str) -> str:
    return " ".join(_CHANGING.sub("…", line).split())[:CAUSE_MAX]


def _last_words(text: str) -> str:
    """The last line of a report: of a skip, its reason."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].rpartition("Skipped: ")[2].strip(" ')")[:CAUSE_MAX] if lines else "no report"
