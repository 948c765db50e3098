"""The query language: what its filters mean, and which are refused."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stack.logging.stack import JOB_LOG, service_entry
from trainstack.logging.filters import FilterTooCostlyError, FilterWork, LogFilterError, parse_filter
from trainstack.logging.structured import entry_from_line

ENTRY: dict[str, object] = {
    **service_entry("Job completed successfully."),
    "insertId": "i1",
    "timestamp": "2026-02-21T14:44:04.123456789Z",
    "receiveTimestamp": "2026-02-21T14:44:05Z",
    "labels": {"ml.googleapis.com/job_id": "123", "empty": ""},
    "jsonPayload": {
        "event": "model_exported", "loss": 0.25, "epoch": 3, "ok": True, "none": None, "digits": "12",
        "tags": ["red", "Green"], "replicas": [{"name": "chief"}, {"name": "worker"}], "nested": {"Path": "gs://b/m"},
    },
    "sourceLocation": {"file": "app.py", "line": "14"},
    "httpRequest": {"remoteIp": "10.1.2.3", "status": 404},
}  # fmt: skip


def passes(text: str, entry: Mapping[str, object] = ENTRY) -> bool:
    return parse_filter(text).passes(entry)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("-- nothing but a comment", True),
        # Equality, substring, presence; without regard to case.
        ('resource.type="ML_JOB"', True),
        ('textPayload="Job completed"', False),
        ('textPayload:"COMPLETED"', True),
        ("textPayload:*", True),
        ("protoPayload:*", False),
        ('textPayload:"*"', False),
        ('json_payload.event="model_exported"', True),
        ("RESOURCE.TYPE:job", True),
        # Paths with quoted parts, lists and nested objects.
        ('labels."ml.googleapis.com/job_id"="123"', True),
        ('"labels".empty=""', True),
        ("labels.empty:*", True),
        ("jsonPayload.tags=green", True),
        ("jsonPayload.tags:gre", True),
        ("jsonPayload.replicas.name=worker", True),
        ("jsonPayload.replicas.name=ps", False),
        ("jsonPayload.nested:path", True),
        ('jsonPayload.nested:"gs://"', True),
        # Numbers, booleans, null.
        ("jsonPayload.loss<0.3", True),
        ("jsonPayload.loss>-1e3", True),
        ("jsonPayload.epoch>=10", False),
        ('jsonPayload.epoch>="3"', True),
        ("jsonPayload.digits<2", True),  # text compares as text
        ("jsonPayload.ok=TRUE", True),
        ("jsonPayload.none=NULL_VALUE", True),
        ("jsonPayload.epoch=three", False),
        ("sourceLocation.line>9", True),
        # Severity by rank, by name or number.
        ("severity>=DEBUG", True),
        ("severity=info", True),
        ("severity>=400", False),
        ("severity!=ERROR", True),
        # Instants, in every spelling of an offset.
        ('timestamp>="2026-02-21T14:44:04Z"', True),
        ('timestamp="2026-02-21T15:44:04.123456789+01:00"', True),
        ('timestamp<"2026-02-21T14:44:04.123456+0000"', False),
        ('timestamp>"2026-02-21"', True),
        # A payload key that is missing fails every comparison; a field of every entry has its default.
        ("jsonPayload.absent!=1", False),
        ("NOT jsonPayload.absent=1", True),
        ("labels.absent:*", False),
        ('trace=""', True),
        ("trace:*", False),
        # Precedence: NOT, then OR, then AND.
        ("severity=INFO OR severity=ERROR AND severity=ERROR", False),
        ("(severity=INFO OR (severity=ERROR AND severity=ERROR))", True),
        ("NOT severity=ERROR OR severity=ERROR", True),
        ("severity=INFO\n-textPayload:failed -- and not failed", True),
        # Lists of values.
        ('severity=(ERROR OR "INFO")', True),
        ("jsonPayload.tags:(blue OR pink)", False),
        # Text anywhere.
        ("completed", True),
        ('"job COMPLETED"', True),
        ("model_exported AND ml_job", True),
        ("nowhere", False),
        # Regular expressions: unanchored, with regard to case.
        ('textPayload=~"comp.*d"', True),
        ('textPayload=~"COMP"', False),
        ('textPayload=~"(?i)COMP"', True),
        ('textPayload!~"^comp"', True),
        ('jsonPayload.nested.path=~"^gs:\\/\\/[a-z]+/\\w$"', True),
        # Words that only begin like operators.
        ("ORDER OR completed", True),
        ("resource.type=NOTHING", False),
        ("ANDROID", False),
    ],
)
def test_a_filter_means_what_the_reference_says(text: str, expected: bool) -> None:
    assert passes(text) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("severity>=", "is incomplete at line 1, column 11"),
        ("(severity=INFO", "is incomplete"),
        ("severity=INFO)", r"unexpected '\)' at line 1, column 14"),
        ("severity=a:b", "unexpected ':' at line 1, column 11"),
        ('\n\n  textPayload="open', "line 3, column 15"),
        ("AND severity=INFO", "unexpected 'AND'"),
        ("severity=LOUD", "'LOUD' is not a severity; expected one of DEFAULT"),
        ("timestamp>yesterday", "expected an RFC 3339 timestamp"),
        ('textPayload=~"("', "not a regular expression"),
        ("thud=1", "no field 'thud'"),
        ("resource.thud=1", "no field 'resource.thud'; expected instead of 'thud' one of type, labels"),
        ("textPayload.thud=1", "textPayload has no subfields"),
        ('jsonPayload.a="x"."y"', "only a part of the value"),
        ('SEARCH("x")', "does not support the function 'SEARCH'"),
        ("severity=INFO log_id()", "does not support the function 'log_id' at line 1, column 15"),
        ("severity=(INFO AND ERROR)", "unexpected 'AND' at line 1, column 16"),
        ("x" * 20_001, "20001 characters; at most 20000"),
        ("(" * 5000 + "a" + ")" * 5000, "5000 deep"),
        ("NOT " * 4900 + "a", "nested too deeply"),
    ],
)
def test_an_invalid_filter_is_refused_with_place_and_reason(text: str, reason: str) -> None:
    with pytest.raises(LogFilterError, match=reason):
        passes(text)


DEPLOYED = (Path(__file__).parents[3] / "trainmaster" / "deploy" / "log_sink.filter").read_text()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Job is preparing.", False),
        ("Job is running.", True),
        ("Job failed.", True),
        ("Job completed successfully.", True),
    ],
)
def test_the_deployed_filter_takes_the_start_and_end_of_a_job(line: str, *, expected: bool) -> None:
    entry = {**ENTRY, "textPayload": line}
    assert passes(DEPLOYED, entry) is expected
    assert passes(DEPLOYED, {**entry, "labels": {"ml.googleapis.com/trial_id": ""}}) is expected
    assert not passes(DEPLOYED, {**entry, "labels": {"ml.googleapis.com/trial_id": "1"}})


def test_the_deployed_filter_takes_no_error_of_a_replica_as_the_end_of_its_job() -> None:
    cause = "The replica workerpool0-0 exited with a non-zero status of 1."
    assert not passes(DEPLOYED, {**ENTRY, "textPayload": cause, "severity": "ERROR"})  # "Job failed." follows


@pytest.mark.parametrize(
    "printed",
    [
        {"event": "model_exported", "message": "Job completed successfully."},
        {"message": "Job failed.", "task_name": "service", "resource": {"labels": {"task_name": "service"}}},
        {"message": "Job is running.", "severity": "ERROR", "logging.googleapis.com/labels": {"a": "b"}},
    ],
)
def test_the_deployed_filter_takes_nothing_that_a_replica_prints(printed: dict[str, object]) -> None:
    chief = {"type": "ml_job", "labels": {"job_id": "123", "project_id": "p1", "task_name": "workerpool0-0"}}
    entry = entry_from_line(json.dumps(printed), "stdout")
    assert not passes(DEPLOYED, {"logName": JOB_LOG, "resource": chief, **entry})


@given(st.text(max_size=40) | st.text('severity=():"-~<>!.*ANDORNOT 1', max_size=40))
@settings(max_examples=100)
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    with contextlib.suppress(LogFilterError):
        assert passes(text) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        'timestamp>="2026-02-21" AND timestamp<"2026-02-22" resource.labels.job_id=123',
        "severity>=DEBUG severity>=INFO",
        'logName="PROJECTS/p1/logs/ml.googleapis.com%2F123" AND (severity>=INFO AND textPayload:job)',
    ],
)
def test_the_bounds_of_a_list_leave_out_no_entry_that_the_filter_takes(text: str) -> None:
    bounds = dict(parse_filter(text).bounds)
    assert passes(text)
    assert bounds
    assert bounds.get("severity >= ?") in (None, 200)
    assert bounds.get("job_id = ?") in (None, "123")
    assert bounds.get("log_name = ?") in (None, str(ENTRY["logName"]).lower())


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("(a+)+b$", "a" * 250_000, False),
        ("(a|a)*b", "a" * 250_000, False),
        ("(?i)LOSS: [0-9.]+$", "step 3 loss: 0.25", True),
        (r"\bz", "éz", True),  # a word is of ASCII letters to RE2
        ("^a$", "a\nb", False),
    ],
)
def test_a_regular_expression_takes_time_in_proportion_to_the_text(
    pattern: str, text: str, *, matches: bool
) -> None:
    """Python's own would try for years at the first two."""
    escaped = pattern.replace("\\", "\\\\")
    assert passes(f'textPayload=~"{escaped}"', service_entry(text)) is matches
    assert passes(f'textPayload!~"{escaped}"', service_entry(text)) is not matches


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "not a regular expression of RE2's: invalid perl operator"),
        ("(a)\\\\1", "invalid escape sequence"),
        ("[ab]{400}", "instructions; at most 300 are allowed"),
        ("a" * 2001, "2001 characters; at most 2000 are allowed"),
    ],
)
def test_a_regular_expression_that_re2_refuses_or_that_is_too_large_is_refused(
    pattern: str, why: str
) -> None:
    with pytest.raises(LogFilterError) as refused:
        passes(f'textPayload=~"{pattern}"')
    assert why in str(refused.value)


def test_a_filter_that_takes_too_long_on_an_entry_is_refused_there() -> None:
    wanted = parse_filter(" OR ".join(f'"{number}x"' for number in range(1000)))
    assert not wanted.passes(ENTRY, FilterWork(entry_bytes=500))
    large = {"jsonPayload": {f"a{number}": 1 for number in range(20_000)}}
    with pytest.raises(FilterTooCostlyError, match="on an entry of 250000 bytes"):
        wanted.passes(large, FilterWork(entry_bytes=250_000))
