"""The entry that a line of output becomes."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stack.logging.stack import JOB_LOG, RESOURCE
from trainstack.instants import format_instant, parse_instant
from trainstack.logging.entry import complete_entry
from trainstack.logging.structured import Stream, entries_from_line, entry_from_line


@pytest.mark.parametrize(
    ("line", "stream", "expected"),
    [
        ("plain\n", "stdout", {"severity": "INFO", "textPayload": "plain"}),
        ("plain", "stderr", {"severity": "ERROR", "textPayload": "plain"}),
        ("[1, 2]", "stdout", {"severity": "INFO", "textPayload": "[1, 2]"}),
        ('{"a": ', "stdout", {"severity": "INFO", "textPayload": '{"a": '}),
        ('{"a": 1}', "stdout", {"severity": "DEFAULT", "jsonPayload": {"a": 1}}),
        ('{"a": 1}', "stderr", {"severity": "ERROR", "jsonPayload": {"a": 1}}),
        ('{"message": "m"}', "stdout", {"severity": "DEFAULT", "textPayload": "m"}),
        (
            '{"severity": "notice", "message": "m", "model_path": "gs://b/m"}',
            "stdout",
            {"severity": "NOTICE", "jsonPayload": {"message": "m", "model_path": "gs://b/m"}},
        ),
        ('{"severity": "LOUD", "a": 1}', "stdout", {"severity": "DEFAULT", "jsonPayload": {"severity": "LOUD", "a": 1}}),
        (
            '{"time": "2026-01-01T00:00:00.5Z", "a": 1, "logging.googleapis.com/labels": {"k": "v"}, "logging.googleapis.com/trace_sampled": true, "logging.googleapis.com/insertId": "i"}',
            "stdout",
            {
                "severity": "DEFAULT", "timestamp": "2026-01-01T00:00:00.500Z", "labels": {"k": "v"},
                "traceSampled": True, "insertId": "i", "jsonPayload": {"a": 1},
            },
        ),
        (
            '{"timestamp": {"seconds": 1, "nanos": 5}, "a": 1}',
            "stdout",
            {"severity": "DEFAULT", "timestamp": "1970-01-01T00:00:01.000000005Z", "jsonPayload": {"a": 1}},
        ),
        # No JSON can answer with it: the whole log could not be read again.
        ('{"loss": 1e400}', "stdout", {"severity": "INFO", "textPayload": '{"loss": 1e400}'}),
    ],
)  # fmt: skip
def test_special_keys_are_lifted_and_the_rest_is_the_payload(
    line: str, stream: Stream, expected: dict[str, object]
) -> None:
    assert entry_from_line(line, stream) == expected


def test_a_replicas_error_line_has_the_shape_of_training_jobs() -> None:
    assert entry_from_line("boom", "stderr", tag="workerpool0-0") == {
        "severity": "ERROR",
        "jsonPayload": {"attrs": {"tag": "workerpool0-0"}, "levelname": "ERROR", "message": "boom"},
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PREFIX = "logging.googleapis.com/"
SPECIAL = st.sampled_from(
    [
        "severity",
        "message",
        "time",
        "timestamp",
        "httpRequest",
        f"{PREFIX}labels",
        f"{PREFIX}operation",
        "other",
    ]
)


@given(st.text() | st.dictionaries(SPECIAL, JSON).map(json.dumps), st.sampled_from(["stdout", "stderr"]))
def test_any_line_becomes_an_entry(line: str, stream: Stream) -> None:
    fields = entry_from_line(line, stream)
    assert ("textPayload" in fields) != ("jsonPayload" in fields)
    complete_entry(fields, {"logName": JOB_LOG, "resource": RESOURCE}, received_ns=0)


@given(st.integers(0, 253_402_300_799 * 10**9))
def test_an_instant_survives_being_written(nanos: int) -> None:
    assert parse_instant(format_instant(nanos)) == nanos


@pytest.mark.parametrize(
    "line",
    [
        "x" * 300_000,
        "\0" * 200_000,
        "\ufffd" * 224 * 1024,
        json.dumps({"severity": "ERROR", "message": "x" * 250_000}),
        json.dumps({"severity": "ERROR", "numbers": [1] * 20_000}).replace("1", "1e15"),
        json.dumps({"severity": "ERROR", "half a pair": "\ud800" * 50_000}),
    ],
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_line_that_is_too_large_for_one_entry_becomes_several_that_are_stored(
    line: str, stream: Stream
) -> None:
    parts = entries_from_line(line, stream, tag="workerpool0-0")
    common = {"logName": JOB_LOG, "resource": RESOURCE, "labels": {"of": "x" * 8_000}}
    stored = [complete_entry({**common, **part}, {}, received_ns=0).fields for part in parts]
    assert len({entry["severity"] for entry in stored}) == 1
    if len(parts) > 1:
        assert "".join(text_of(entry) for entry in stored) == line


def text_of(entry: Mapping[str, Any]) -> str:
    text: str = entry["textPayload"] if "textPayload" in entry else entry["jsonPayload"]["message"]
    return text
