"""Injections strike requests to Cloud Storage and Cloud Logging; the official clients see them."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import requests
from google.api_core.exceptions import PreconditionFailed, ServiceUnavailable, TooManyRequests
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY

from tests.stack.storage.conftest import client_of
from trainstack import logging
from trainstack.storage import serve

from .conftest import PATH, account, ask


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[storage.Bucket]:
    with serve(tmp_path_factory.mktemp("storage")) as address, client_of(address) as client:
        yield client.create_bucket("inbox")


@pytest.fixture
def bucket(served: storage.Bucket) -> Iterator[storage.Bucket]:
    """Empty, and without injections."""
    yield served
    httpx.delete(f"{served.client._connection.API_BASE_URL}{PATH}", timeout=60)
    served.delete_blobs(list(served.list_blobs()))


@pytest.fixture
def url(bucket: storage.Bucket) -> str:
    return str(bucket.client._connection.API_BASE_URL)


def insert(bucket: storage.Bucket, name: str, *, retry: object = None) -> None:
    bucket.blob(name).upload_from_string("x", if_generation_match=0, retry=retry)


def names(bucket: storage.Bucket) -> list[str]:
    return [blob.name for blob in bucket.list_blobs()]


def test_an_error_before_leaves_nothing_done_and_is_counted(url: str, bucket: storage.Bucket) -> None:
    ask(url, {"name": "second", "at": "storage.objects.insert", "kind": "error_before", "code": 429,
              "skip": 1, "times": 1})  # fmt: skip
    insert(bucket, "a")
    with pytest.raises(TooManyRequests, match="injection 'second' struck"):
        insert(bucket, "b")
    assert names(bucket) == ["a"]
    insert(bucket, "b")
    found = account(url, "second")
    assert (found["asked"], found["struck"], found["on"]) == (3, 1, ["storage.objects.insert inbox/b"])


def test_an_error_after_is_carried_out_and_answered_with_an_error(url: str, bucket: storage.Bucket) -> None:
    ask(url, {"name": "untold", "at": "storage.objects.insert", "kind": "error_after", "times": 1})
    with pytest.raises(ServiceUnavailable):
        insert(bucket, "a")
    assert names(bucket) == ["a"]
    with pytest.raises(PreconditionFailed):
        insert(bucket, "a")


def test_a_dropped_request_breaks_the_connection_and_the_clients_own_retry_recovers(
    url: str, bucket: storage.Bucket
) -> None:
    ask(url, {"name": "gone", "at": "storage.objects.insert", "kind": "drop", "times": 2})
    with pytest.raises(requests.exceptions.ConnectionError):
        insert(bucket, "a")
    assert names(bucket) == []
    insert(bucket, "a", retry=DEFAULT_RETRY.with_delay(initial=0.01))
    assert names(bucket) == ["a"]
    assert account(url, "gone")["struck"] == 2


def test_a_duplicate_is_carried_out_twice_and_the_second_answer_is_sent(
    url: str, bucket: storage.Bucket
) -> None:
    ask(
        url,
        {
            "name": "twice",
            "at": "storage.objects.insert",
            "kind": "duplicate",
            "match": "inbox/a",
            "times": 1,
        },
    )
    with pytest.raises(PreconditionFailed):
        insert(bucket, "a")
    assert names(bucket) == ["a"]
    insert(bucket, "b")
    assert account(url, "twice")["asked"] == 1


def test_a_removed_injection_strikes_no_more(url: str, bucket: storage.Bucket) -> None:
    ask(url, {"name": "gone", "at": "storage.objects.insert", "kind": "drop"})
    assert httpx.delete(f"{url}{PATH}/gone", timeout=60).json() == {"seed": 0, "injections": []}
    insert(bucket, "first")
    missing = httpx.delete(f"{url}{PATH}/gone", timeout=60)
    assert missing.status_code == 404
    assert missing.json()["error"]["message"] == "There is no injection named 'gone'; active: none."


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"{", "The body is not a plan in JSON"), (b'{"name": "a"}', "$.at: missing"), (b"[" * 100_000, "not a plan in JSON")],
)  # fmt: skip
def test_an_invalid_plan_is_refused_with_the_reason(url: str, body: bytes, reason: str) -> None:
    answer = httpx.post(f"{url}{PATH}", content=body, timeout=60)
    assert answer.status_code == 400
    assert reason in answer.json()["error"]["message"]
    assert httpx.get(f"{url}{PATH}", timeout=60).json() == {"seed": 0, "injections": []}


def test_another_method_is_refused_with_those_that_there_are(url: str) -> None:
    for verb in ("GET", "POST"):
        refused = httpx.request(verb, f"{url}{PATH}/slow", timeout=60)
        assert refused.status_code == 405
        assert f"DELETE {PATH}/NAME removes one" in refused.text


def test_written_entries_are_refused_by_their_logs_name(tmp_path: Path) -> None:
    with logging.serve(tmp_path / "logging") as url:
        ask(url, {"name": "full", "at": "logging.entries.write", "kind": "error_before", "match": "*/logs/a"})
        answers = [
            httpx.post(
                f"{url}/v2/entries:write",
                json={
                    "logName": f"projects/p1/logs/{log}",
                    "resource": {"type": "global"},
                    "entries": [{"textPayload": "x"}],
                },
                timeout=60,
            )
            for log in ("a", "b")
        ]
        assert [answer.status_code for answer in answers] == [503, 200]
        assert answers[0].json()["error"]["status"] == "UNAVAILABLE"
        assert account(url, "full")["on"] == ["logging.entries.write projects/p1/logs/a"]
