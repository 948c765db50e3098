"""The console's reader of a job's entries, on the official client."""

from datetime import UTC, datetime, timedelta

from tests.wire.logging.stack import Stack, service_entry
from trainmaster.client.job_logs import JobLogs

BEGUN = datetime.now(UTC) - timedelta(minutes=1)  # without a bound the client asks for the last day


def texts(logs: JobLogs) -> list[str]:
    return [entry.payload for entry in logs.fresh("123")]


def write(stack: Stack, text: str, second: int) -> None:
    stack.write(service_entry(text, timestamp=(BEGUN + timedelta(seconds=second)).isoformat()))


def test_an_entry_is_given_once_in_order(stack: Stack) -> None:
    logs = JobLogs(stack.client)
    write(stack, "one", 1)
    write(stack, "two", 2)
    assert texts(logs) == ["one", "two"]
    write(stack, "three", 3)
    assert texts(logs) == ["three"]
    assert texts(logs) == []


def test_an_entry_that_comes_after_a_later_one_is_not_missed(stack: Stack) -> None:
    logs = JobLogs(stack.client)
    write(stack, "of one trial", 30)
    assert texts(logs) == ["of one trial"]
    write(stack, "of another, sent in a later batch", 5)
    assert texts(logs) == ["of another, sent in a later batch"]
    write(stack, "of a third", 20)
    assert texts(logs) == ["of a third"]
