"""Uploading requests whose names others use too, on a real storage server; a thread records them as the service does."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.client.recording import service, status
from tests.client.served import Served, run_record, served_context
from trainmaster.client.clients import Clients
from trainmaster.client.errors import TimedOut
from trainmaster.client.submission.prepare import Prepared
from trainmaster.client.submission.send import Sent, is_refused, problems_of, recorded, upload

SUBMITTERS = 6


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path) as served:
        yield served


def request(text: str, name: str = "requests/request.yaml") -> Prepared:
    return Prepared(file="request.yaml", object_name=name, content=text.encode())


def test_concurrent_submissions_of_one_name_are_all_read(served: Served) -> None:
    texts = [f"model_name: m{number}" for number in range(SUBMITTERS)]

    def submit(text: str) -> Sent:
        with Clients(served.clients.context) as clients:
            return upload(clients, request(text), timeout_s=120)

    read: list[bytes] = []
    with service(served, read), ThreadPoolExecutor(SUBMITTERS) as pool:
        sent = list(pool.map(submit, texts))
        assert recorded(served.clients, max(sent, key=lambda each: each.generation or 0), timeout_s=120)
    assert sorted(read) == [text.encode() for text in texts]
    assert len({each.run_id for each in sent}) == SUBMITTERS


def test_a_request_that_was_not_read_is_not_overwritten(served: Served) -> None:
    first = upload(served.clients, request("model_name: first"))
    with pytest.raises(TimedOut, match=r"has not read the previous requests/request\.yaml yet"):
        upload(served.clients, request("model_name: second"), timeout_s=0)
    status(served, first.generation or 0, state="retrying", run_id=None)
    with pytest.raises(TimedOut, match="rename the file"):
        upload(served.clients, request("model_name: second"), timeout_s=0)
    bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
    assert bucket.blob("requests/request.yaml").download_as_bytes() == b"model_name: first"
    status(served, first.generation or 0)
    second = upload(served.clients, request("model_name: second"), timeout_s=0)
    assert (second.generation or 0) > (first.generation or 0)


def test_the_status_of_a_later_upload_does_not_stand_for_an_earlier_one(served: Served) -> None:
    sent = upload(served.clients, request("model_name: m"))
    status(served, (sent.generation or 0) + 1, state="succeeded")
    assert recorded(served.clients, sent, timeout_s=0) is None
    rejected = run_record("failed", run_id=sent.run_id, state="rejected", problems=["$.cluster: missing"])
    served.write("ledger", f"runs/{sent.run_id}.json", rejected)
    found = recorded(served.clients, sent, timeout_s=0)
    assert found == rejected
    assert is_refused(rejected)
    assert problems_of(rejected) == rejected["problems"]
