"""What each test of a suite gave: passed, refused, wrong or skipped, with the cause of each failure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, parse

FAILURES = ("refused", "wrong")
KINDS = ("passed", *FAILURES, "skipped")
CAUSE_MAX = 160

_REFUSAL = re.compile(r"not imitated|local stack (?:does not serve|does not support|has no)")
"""The stack's own sentence about something that it does not imitate."""
_EXCEPTION = re.compile(
    r"^E   +((?:[A-Za-z_][\w.]*: |assert |[A-Za-z_][\w.]*(?:Error|Exception)$).*)", re.MULTILINE
)
_CHANGING = re.compile(r"https?://\S+|[0-9a-f]{8}-[0-9a-f-]{20,}|\d{3,}|0x[0-9a-f]+|(?<=/)[\w.-]*\d[\w.-]*")
"""Words that differ between runs of one test: addresses, unique names, numbers."""
_PATHS = re.compile(r"\[[^\]]*\]?|\S*/\S*")
"""What also differs between tests with one cause: lists and names of objects."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The results of one suite on one day.

    `counts` has the number of tests of each kind; `causes` the failures, by kind and by cause, each with the tests.
    """

    suite: str
    version: str
    commit: str
    date: str
    counts: Mapping[str, int]
    causes: Mapping[str, Mapping[str, Sequence[str]]]


def read_outcomes(report: Path) -> list[tuple[str, str, str]]:
    """The name of each test in pytest's JUnit report, its kind, and the cause of a failure."""
    results: dict[str, tuple[str, str]] = {}
    for case in parse(report).iter("testcase"):
        test = f"{case.get('classname')}::{case.get('name')}"
        if results.get(test, ("", ""))[0] not in FAILURES:  # one whose teardown fails too has two entries
            results[test] = _outcome_of(case)
    return [(test, kind, cause) for test, (kind, cause) in results.items()]


def count_of(outcomes: Sequence[tuple[str, str, str]]) -> dict[str, int]:
    """How many tests are of each kind."""
    counted = Counter(kind for _, kind, _ in outcomes)
    return {kind: counted[kind] for kind in KINDS}


def causes_of(outcomes: Sequence[tuple[str, str, str]]) -> dict[str, dict[str, list[str]]]:
    """The tests that failed, by kind and cause, most frequent cause first."""
    causes: dict[str, dict[str, list[str]]] = {kind: {} for kind in FAILURES}
    for test, kind, cause in outcomes:
        if kind in FAILURES:
            causes[kind].setdefault(cause, []).append(test)
    return {
        kind: dict(sorted(tests.items(), key=lambda cause: (-len(cause[1]), cause[0])))
        for kind, tests in causes.items()
    }


def _outcome_of(case: Element) -> tuple[str, str]:
    """The kind and its cause. A test whose teardown fails has failed."""
    failure = next((part for part in case if part.tag in ("failure", "error")), None)
    if failure is None:
        return ("passed" if case.find("skipped") is None else "skipped"), ""
    exceptions = _EXCEPTION.findall(failure.text or "") or [failure.get("message", "")]
    if refusals := [line for line in exceptions if _REFUSAL.search(line)]:
        return "refused", _without_changing(refusals[-1])
    return "wrong", _without_changing(_PATHS.sub("…", exceptions[-1]))


def _without_changing(line: str) -> str:
    return " ".join(_CHANGING.sub("…", line).split())[:CAUSE_MAX]
