"""entries:write and entries:list as requests on the wire."""

from pathlib import Path

import pytest
import requests

from tests.stack.logging.stack import DAY, JOB_LOG, RESOURCE, Stack, connected, service_entry
from tests.stack.waiting import in_time
from trainstack import logging
from trainstack.logging import Logging
from trainstack.logging.entry import EntryError


def test_an_entry_is_completed_as_the_service_completes_it(stack: Stack) -> None:
    stack.write(
        {"textPayload": "hello", "severity": 400}, logName=JOB_LOG, resource=RESOURCE, labels={"a": "b"}
    )
    (entry,) = stack.entries()
    assert entry["insertId"]
    assert entry["timestamp"] == entry["receiveTimestamp"]
    assert (entry["logName"], entry["resource"], entry["labels"], entry["severity"]) == (
        JOB_LOG, RESOURCE, {"a": "b"}, "WARNING",
    )  # fmt: skip


def test_an_entrys_own_values_win_over_the_requests(stack: Stack) -> None:
    own = service_entry("hello", labels={"a": "own"}, insertId="i1", timestamp=f"{DAY}T01:00:00.5+01:00")
    stack.write(own, logName="projects/p1/logs/other", labels={"a": "shared", "b": "shared"})
    (entry,) = stack.entries()
    assert (entry["logName"], entry["labels"]) == (JOB_LOG, {"a": "own", "b": "shared"})
    assert (entry["insertId"], entry["timestamp"]) == ("i1", f"{DAY}T00:00:00.500Z")


def test_the_same_insert_id_at_the_same_time_is_kept_once(stack: Stack) -> None:
    twice = service_entry("hello", insertId="i1", timestamp=f"{DAY}T00:00:00Z")
    stack.write(twice, twice)
    stack.write(twice, service_entry("later", insertId="i1", timestamp=f"{DAY}T00:00:01Z"))
    assert [entry["textPayload"] for entry in stack.entries()] == ["hello", "later"]


def test_faulty_entries_are_named_and_keep_the_others_only_with_partial_success(stack: Stack) -> None:
    faulty = service_entry("x", severity="LOUD", labels={"n": 3}, thud=1)
    refused = stack.write(service_entry("good"), faulty)["error"]
    assert (refused["code"], refused["status"]) == (400, "INVALID_ARGUMENT")
    for named in ("index 1", "'LOUD'", "labels.n", "LogEntry.thud is unknown"):
        assert named in refused["message"]
    assert stack.entries() == []
    partly = stack.write(service_entry("good"), faulty, partialSuccess=True)["error"]
    assert list(partly["details"][0]["logEntryErrors"]) == ["1"]
    assert [entry["textPayload"] for entry in stack.entries()] == ["good"]


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"logName": "mylog"}, "logName 'mylog' must be"),
        ({"logName": "projects/p1/logs/a/b"}, "URL-encoded"),
        ({"logName": JOB_LOG, "jsonPayload": {}, "textPayload": ""}, "only one payload"),
        (
            {"logName": JOB_LOG, "timestamp": "yesterday"},
            "expected an RFC 3339 timestamp such as 2026-01-31T12:00:00.5Z, found 'yesterday'",
        ),
        (service_entry("x" * 300_000), "at most 262144"),
    ],
)
def test_an_invalid_entry_is_refused_with_the_reason(
    stack: Stack, entry: dict[str, object], named: str
) -> None:
    assert named in stack.write(entry)["error"]["message"]


def test_an_invalid_request_is_refused_and_the_service_continues(stack: Stack) -> None:
    for junk in (
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"entries": {}}',
        b'{"entries": [{}], "colour": 1}',
        b"[" * 100_000,
        b'{"entries": [{"jsonPayload": {"a": NaN}}]}',
    ):
        answer = requests.post(f"{stack.url}/v2/entries:write", data=junk, timeout=60)
        assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    faulty: list[dict[str, object]] = [
        {"orderBy": "severity"}, {"pageSize": -1}, {"pageToken": "junk"}, {"resourceNames": []},
    ]  # fmt: skip
    for wrong in faulty:
        body = {"resourceNames": ["projects/p1"], **wrong}
        assert stack.call("POST", "/v2/entries:list", body)["error"]["code"] == 400
    assert stack.write(service_entry("hello")) == {}


@in_time
async def test_an_entry_that_is_refused_costs_no_other_line_of_a_jobs_log(tmp_path: Path) -> None:
    lines = [service_entry("before"), service_entry("x" * 300_000), service_entry("after")]
    local = Logging(dir=tmp_path)
    with pytest.raises(EntryError, match=r"entries\[1\]: the entry has"):
        local.write(lines)
    await local.stop()
    with logging.serve(tmp_path) as url, connected(url, "localhost:1") as stack:
        assert [entry["textPayload"] for entry in stack.entries()] == ["before", "after"]


def test_lone_surrogates_are_replaced(stack: Stack) -> None:
    stack.topic("logs")
    stack.sink("s1", "logs", "")
    stack.write(service_entry("half \ud800 pair", insertId="\udfff"))
    (kept,) = stack.entries()
    assert (kept["textPayload"], kept["insertId"]) == ("half ? pair", "?")
    assert [entry["textPayload"] for entry in stack.received("logs", 1)] == ["half ? pair"]


def test_a_project_sees_its_own_entries_alone(stack: Stack) -> None:
    stack.write(service_entry("mine"), service_entry("other", logName="projects/p2/logs/x"))
    assert [entry["textPayload"] for entry in stack.entries()] == ["mine"]
    both = stack.entries(resourceNames=["projects/p1", "projects/p2/locations/global/buckets/b/views/v"])
    assert len(both) == 2
