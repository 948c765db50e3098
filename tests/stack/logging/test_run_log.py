"""The reader of jobs' logs, on the official client."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.stack.logging.stack import RESOURCE, Stack, service_entry
from trainmaster.client.logs import read
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import JobLogReader, Selection

BEGUN = datetime.now(UTC) - timedelta(minutes=3)


def reader(stack: Stack, **selected: object) -> JobLogReader:
    return JobLogReader(stack.client, BEGUN, Selection(**selected))  # type: ignore[arg-type]  # each test names its own


def texts(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines]


def write(
    stack: Stack, text: str, second: float, *, task: str = "service", job: str = "123", **more: object
) -> None:
    resource = {**RESOURCE, "labels": {"job_id": job, "project_id": "p1", "task_name": task}}
    at = (BEGUN + timedelta(seconds=second)).isoformat()
    stack.write(service_entry(text, timestamp=at, resource=resource, **more))


def test_an_entry_is_given_once_in_order(stack: Stack) -> None:
    logs = reader(stack)
    write(stack, "one", 1)
    write(stack, "two", 2)
    assert texts(logs.new(["123"])) == ["one", "two"]
    write(stack, "three", 3)
    assert texts(logs.new(["123"])) == ["three"]
    assert logs.new(["123"]) == []


def test_an_entry_that_comes_after_a_later_one_is_not_missed(stack: Stack) -> None:
    logs = reader(stack)
    write(stack, "of one trial", 30)
    assert texts(logs.new(["123"])) == ["of one trial"]
    write(stack, "of another, sent in a later batch", 5)
    assert texts(logs.new(["123"])) == ["of another, sent in a later batch"]
    write(stack, "of a third", 20)
    assert texts(logs.new(["123"])) == ["of a third"]


def test_the_last_lines_are_followed_by_the_new_ones_without_those_left_out(stack: Stack) -> None:
    logs = reader(stack)
    for second in range(5):
        write(stack, str(second), second)
    lines, left_out = logs.last(["123"], 2)
    assert (texts(lines), left_out) == (["3", "4"], True)
    write(stack, "5", 5)
    assert texts(logs.new(["123"])) == ["5"]


def test_the_lines_of_all_jobs_are_merged_by_time(stack: Stack) -> None:
    write(stack, "second", 2, job="124")
    write(stack, "first", 1)
    write(stack, "of another run", 3, job="999")
    write(stack, "third", 4)
    assert texts(reader(stack).new(["123", "124"])) == ["first", "second", "third"]


def test_a_read_is_bounded_and_the_next_one_continues(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "READ_MAX", 3)
    logs = reader(stack)
    for second in range(8):
        write(stack, str(second), 10 * second)
    found = [texts(logs.new(["123"])) for _ in range(5)]
    assert all(len(each) <= 3 for each in found)
    assert [text for each in found for text in each] == [str(second) for second in range(8)]


@pytest.mark.parametrize(
    ("selected", "expected"),
    [
        ({"replica": "workerpool1-0"}, ["worker"]),
        ({"replica": "chief"}, ["chief", "trial"]),
        ({"trial_id": "2"}, ["trial"]),
        ({"replica": 'x" OR severity>=DEFAULT OR "'}, []),
        ({"since": BEGUN + timedelta(seconds=3)}, ["trial"]),
    ],
)
def test_lines_are_selected_by_replica_trial_and_time(
    stack: Stack, selected: dict[str, object], expected: list[str]
) -> None:
    write(stack, "chief", 1, task="workerpool0-0")
    write(stack, "worker", 2, task="workerpool1-0")
    write(stack, "trial", 3, task="workerpool0-0", labels={"ml.googleapis.com/trial_id": "2"})
    assert texts(reader(stack, **selected).new(["123"])) == expected


def test_an_empty_trial_label_marks_a_line_of_the_job_itself(stack: Stack) -> None:
    write(stack, "Job failed.", 1, task="service", labels={"ml.googleapis.com/trial_id": ""})
    (line,) = reader(stack).new(["123"])
    assert (line.trial_id, line.ends_job) == (None, True)
    assert line.document["trial_id"] is None
