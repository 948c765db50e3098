"""Inputs that were slow once, replayed: each costs a bounded number of function calls.

Calls are counted, not time: every machine counts the same, whatever its load.
"""

import contextlib
import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.core.fuzz import seeds
from tests.core.fuzz.parsers import BUCKETS, PARSERS, REQUEST_RULES, RuleFile
from tests.core.parsed import parse_request

MOST_CALLS = 3_500_000
"""The most expensive input takes 2 million."""


def keys(count: int, value: object) -> dict[str, object]:
    return {f"k{number}": value for number in range(count)}


def written(document: object) -> bytes:
    return json.dumps(document).encode()


RULE = {
    "when": [{"new_data": {"objects": f"gs://data/{number}/**"}} for number in range(10)],
    "request_uri": f"gs://{BUCKETS.inbox}/templates/a.json",
}
"""The rule that repeats the check of its template most often."""
TEMPLATE = written({**seeds.OWN[0], "args": ["${rule.id}"] * 4900})
TUNING = seeds.TUNING[1]
FOUND: tuple[tuple[str, Any], ...] = (
    ("request", written({**seeds.OWN[3], "env": keys(2400, {})})),
    ("request", b"- 1_0:0\n" * 9900),
    ("request", b"".join(b"%d: 1\n" % number for number in range(4900))),
    ("request", written({**seeds.OWN[0], "cluster": {**seeds.OWN[0]["cluster"], **keys(4400, 1)}})),
    ("request of custom-jobs", written({**seeds.CUSTOM[1], **keys(4900, 10**30)})),
    (
        "request of hp-tuning-jobs",
        written({**TUNING, "trialJobSpec": {**TUNING["trialJobSpec"], **keys(4900, 10**30)}}),
    ),
    ("request of ai-platform", written({**seeds.AI_PLATFORM[3], **keys(4900, "a")})),
    ("rule", RuleFile(name="rules/a.json", content=written({**RULE, "when": [1] * 4900}), template=None)),
    ("rule", RuleFile(name="rules/a.json", content=written(RULE), template=TEMPLATE)),
    ("model manifest", written({**seeds.MANIFESTS[0], **keys(30_000, None)})),
)


def calls_of(feed: Callable[[], object]) -> int:
    """How many functions the parser calls, of Python's and of C; a refusal costs calls too."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with contextlib.suppress(ValueError, RecursionError):
            feed()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given"), [pytest.param(*row, id=f"{number}-{row[0]}") for number, row in enumerate(FOUND)]
)
def test_an_input_that_was_slow_costs_a_bounded_number_of_calls(name: str, given: Any) -> None:
    (parser,) = (parser for parser in PARSERS if parser.name == name)
    feed = read_request if name.startswith("request") else parser.feed
    assert calls_of(lambda: feed(given)) < MOST_CALLS


def read_request(content: bytes) -> object:
    return parse_request(content, as_json=False, request_rules=REQUEST_RULES, name="named")
