"""Messages quote values in the notation of YAML and JSON, never in Python's; a report of faults is bounded."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.core.generated import json_values
from tests.core.shipped import assert_valid
from trainmaster.orchestrator.core.documents.faults import (
    FOUND_MAX_CHARS,
    MAX_FAULTS,
    TEXT_MAX_CHARS,
    Fault,
    Refused,
    shown,
)
from trainmaster.orchestrator.core.documents.validation import schema_faults

WORDS = st.sampled_from(
    ["a", "gs://b/c", "yes", "Null", "1", "", "a b", "it's", "--flag=x", "/p", "1.5", "on"]
)
VALUES = json_values(WORDS, st.integers(-99, 99))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (1.5, "1.5"),
        ("a", "'a'"),
        (["a", "--b", "no", 1, None], "[a, '--b', 'no', 1, null]"),
        ({"machine": "n1-standard-4", "spot": True}, "{machine: n1-standard-4, spot: true}"),
        ({}, "{}"),
        ([], "[]"),
        (b"\xff\x00", "bytes ff 00"),
        ("a\x1b\n", r"'a\x1b\n'"),
        (["\n"], r"['\n']"),
    ],
)
def test_a_value_is_quoted_as_its_author_would_write_it(value: object, text: str) -> None:
    assert shown(value) == text


@given(VALUES)
def test_what_is_quoted_reads_back_as_the_value(value: object) -> None:
    text = shown(value)
    if "\\" not in text and len(text) < FOUND_MAX_CHARS:
        assert yaml.safe_load(text) == value


@pytest.mark.parametrize(
    "value", ["x" * 10**6, ["x"] * 10**6, {"k" * 10**6: 1}, b"x" * 10**6, [[["x" * 999]]] * 9]
)
def test_a_large_value_is_cut(value: object) -> None:
    assert len(shown(value)) == FOUND_MAX_CHARS
    assert shown(value).endswith("…")


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"minItems": 1}, [], "$: too few entries; found 0 entries; allowed: at least 1 entry"),
        ({"minItems": 2}, [1], "$: too few entries; found 1 entry; allowed: at least 2 entries"),
        ({"maxItems": 2}, [1, 2, 3], "$: too many entries; found 3 entries; allowed: at most 2 entries"),
        (
            {"maxProperties": 1, "description": "a map of names"},
            {"a": 1, "b": 2},
            "$: too many entries; found 2 entries; allowed: at most 1 entry: a map of names",
        ),
        (
            {"maxItems": 2, "description": "1 to 2 values"},
            [1, 2, 3],
            "$: too many entries; found 3 entries; allowed: 1 to 2 values",
        ),
        ({"minimum": 1}, 0, "$: too small; found 0; allowed: at least 1"),
        ({"exclusiveMinimum": 0}, 0, "$: too small; found 0; allowed: more than 0"),
        ({"maxLength": 2}, "abc", "$: too long; found 'abc'; allowed: at most 2 characters"),
        ({"const": True}, None, "$: not the required value; found null; allowed: true"),
        ({"type": ["string", "null"]}, [True], "$: expected a string or nothing; found [true]"),
    ],
    ids=json.dumps,
)
def test_a_limit_says_what_is_found_and_allowed(schema: dict[str, Any], value: object, text: str) -> None:
    assert [str(fault) for fault in schema_faults(schema, value)] == [text]


def test_a_report_is_bounded_in_the_number_and_the_length_of_its_faults() -> None:
    """A path has every key of its place: one of 100,000 characters is below the limit of a request's size."""
    long = "k" * 100_000
    fault = Fault(at=("env", long, 1), problem=long, found=long, allowed=long, repair=long)
    faults = Refused(faults=(fault,) * (MAX_FAULTS + 50)).faults
    documents = [each.document for each in faults]
    source = {"kind": "object", "event_id": "1", "event_time": "2026-03-04T12:00:00Z"}
    assert_valid(
        {"schema": "rejection_report.v1", "run_id": "a", "source": source, "faults": documents},
        "rejection_report.v1",
    )
    assert len(documents) == MAX_FAULTS + 1
    assert {len(str(text)) for text in documents[0].values()} == {TEXT_MAX_CHARS}
    assert documents[-1]["problem"] == "50 more faults are not listed"
    assert str(documents[0]["path"]).startswith("$.env.kkk")
