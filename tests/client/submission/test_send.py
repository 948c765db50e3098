"""Uploading requests whose names others use too, on a real storage server; a thread records them as the service does."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.client.recording import service, status
from tests.client.served import Served, deployment, run_record, served_context
from tests.client.submission.test_examination import TERMS
from tests.fixtures import fixture_of
from trainmaster.client.clients import Clients
from trainmaster.client.errors import TimedOut
from trainmaster.client.submission.examination import Examination
from trainmaster.client.submission.send import Sent, problems_of, upload, wait_until_recorded
from trainmaster.client.submission.source import RequestSource
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT, message_status_object
from trainmaster.orchestrator.core.requests.incoming import run_id_of_message_key

SUBMITTERS = 6


served = fixture_of(served_context, scope="function", publishes=True)


def request(text: str, name: str = "requests/request.yaml") -> Examination:
    return Examination(
        source=RequestSource(file="request.yaml"), terms=TERMS, object_name=name, content=text.encode()
    )


def test_concurrent_submissions_of_one_name_are_all_read(served: Served) -> None:
    texts = [f"model_name: m{number}" for number in range(SUBMITTERS)]

    def submit(text: str) -> Sent:
        with Clients(served.clients.context) as clients:
            return upload(clients, request(text), timeout_s=120)

    read: list[bytes] = []
    with service(served, read), ThreadPoolExecutor(SUBMITTERS) as pool:
        sent = list(pool.map(submit, texts))
        assert wait_until_recorded(
            served.clients, max(sent, key=lambda each: each.generation or 0), timeout_s=120
        )
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


def test_a_used_key_is_refused_before_anything_is_packed_into_the_bucket(served: Served) -> None:
    (served.folder / "fit.py").write_text("print(1)\n")
    served.write("ledger", DEPLOYMENT_OBJECT, deployment())
    key = message_status_object(message_id="", idempotency_key="used")
    used = {"schema": "drop_status.v1", "state": "succeeded", "run_id": run_id_of_message_key("used")}
    served.write("ledger", key, used)
    done = served.trainmaster("submit", "--script", "fit.py", "--name", "m", "--key", "used")
    assert (done.status, done.out) == (2, "")
    assert "choose another --key" in done.err
    assert "Uploaded" not in done.err
    assert not list(served.clients.storage.list_blobs(served.clients.context.data_bucket))


def test_the_status_of_a_later_upload_does_not_stand_for_an_earlier_one(served: Served) -> None:
    sent = upload(served.clients, request("model_name: m"))
    status(served, (sent.generation or 0) + 1, state="succeeded")
    assert wait_until_recorded(served.clients, sent, timeout_s=0) is None
    rejected = run_record("failed", run_id=sent.run_id, state="rejected", problems=["$.cluster: missing"])
    served.write("ledger", f"runs/{sent.run_id}.json", rejected)
    found = wait_until_recorded(served.clients, sent, timeout_s=0)
    assert found == rejected
    assert problems_of(rejected) == rejected["problems"]
