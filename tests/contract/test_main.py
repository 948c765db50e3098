"""The entry points under functions-framework, in separate processes, against the emulators."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.api_core.exceptions import AlreadyExists
from google.cloud.storage import Client

from tests.contract.conftest import PROGRAM
from tests.contract.functions import running
from tests.contract.proxy import Proxy
from tests.contract.world import PROJECT, REGION
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.arrivals import Arrivals
from trainmaster.orchestrator.stores.ledger import Ledger
from trainstack.events.clients import clients_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOTICES = "notices-of-main"
REQUEST = f"model_name: m\nimage: {PROGRAM}\nargs: [tell]\ncluster:\n  chief: {{machine: n1-standard-4}}\n"


@pytest.fixture
def buckets(new_bucket: Callable[[], str], jobs_buckets: Path) -> dict[str, str]:
    made = {role: new_bucket() for role in ("inbox", "ledger", "models", "champions")}
    (jobs_buckets / made["models"]).mkdir()
    return made


@pytest.fixture
def environment(
    buckets: dict[str, str], storage_proxy: Proxy, jobs_proxy: Proxy, pubsub_host: str
) -> dict[str, str]:
    with clients_of(pubsub_host) as clients, suppress(AlreadyExists):
        clients.publisher.create_topic(name=f"projects/{PROJECT}/topics/{NOTICES}")
    return {
        "PATH": os.environ["PATH"],
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        "TRAINMASTER_REGION": REGION,
        "TRAINMASTER_INBOX_BUCKET": buckets["inbox"],
        "TRAINMASTER_LEDGER_BUCKET": buckets["ledger"],
        "TRAINMASTER_MODELS_BUCKET": buckets["models"],
        "TRAINMASTER_CHAMPIONS_BUCKET": buckets["champions"],
        "TRAINMASTER_NOTICES_TOPIC": NOTICES,
        "TRAINMASTER_FUNCTION_TIMEOUT_S": "120",
        "STORAGE_EMULATOR_HOST": storage_proxy.url,
        "VERTEX_EMULATOR_HOST": jobs_proxy.url,
        "PUBSUB_EMULATOR_HOST": pubsub_host,
        "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true",
    }


@pytest.fixture
def start(staged: Path, environment: dict[str, str], free_port: Callable[[], int]) -> Callable[[str], Any]:
    return lambda entry_point: running(entry_point, staged, environment, free_port())


def dropped(client: Client, bucket: str, name: str, content: bytes) -> dict[str, str]:
    blob = client.bucket(bucket).blob(name)
    blob.upload_from_string(content)
    return {
        "bucket": bucket,
        "name": name,
        "generation": str(blob.generation),
        "size": str(blob.size),
        "timeCreated": blob.time_created.isoformat(),
    }


def documents(client: Client, bucket: str, prefix: str) -> list[dict[str, Any]]:
    return [json.loads(blob.download_as_bytes()) for blob in client.list_blobs(bucket, prefix=prefix)]


def test_uploads_in_every_encoding_meet_one_record(
    start: Callable[[str], Any], gcs: GcsObjects, buckets: dict[str, str], vertex: VertexJobs
) -> None:
    event = dropped(gcs._client, buckets["inbox"], "requests/a.yaml", REQUEST.encode())
    name = f"projects/_/buckets/{buckets['inbox']}/objects/requests/a.yaml#{event['generation']}"
    resource = {"service": "storage.googleapis.com", "name": name, "type": "storage#object"}
    legacy = {
        "context": {
            "eventId": "9",
            "timestamp": "2026-01-01T00:00:00Z",
            "eventType": "google.storage.object.finalize",
            "resource": resource,
        },
        "data": event,
    }
    with start("on_request_uploaded") as function:
        assert function.deliver(event).status_code == 200
        assert function.deliver(event).status_code == 200
        assert httpx.post(function.url, json=legacy, timeout=120).status_code == 200
    (record,) = documents(gcs._client, buckets["ledger"], "runs/")
    assert record["state"] == "submitted"
    assert len(vertex.of_run(record["run_id"], JobKind.CUSTOM, [REGION])) == 1


def test_bad_uploads_are_acknowledged_reported_and_leave_the_function_well(
    start: Callable[[str], Any], gcs: GcsObjects, buckets: dict[str, str], jobs_proxy: Proxy
) -> None:
    inbox, client = buckets["inbox"], gcs._client
    bad = {
        "requests/broken.yaml": b"a: [1",
        "requests/binary.yaml": bytes(range(256)),
        "requests/bomb.yaml": b"a: &a [x]\nb: [*a, *a]\n",
        "requests/deep.json": b"[" * 100_000,
        "requests/unknown.yaml": b"model_nam: x\n",
        "requests/huge.yaml": b" " * (300 * 1024),
    }
    with start("on_request_uploaded") as function:
        for name, content in bad.items():
            assert function.deliver(dropped(client, inbox, name, content)).status_code == 200
        ignored = dropped(client, inbox, "notes.txt", b"x")
        assert function.deliver(ignored).status_code == 200
        assert (
            function.deliver(dropped(client, inbox, "requests/good.yaml", REQUEST.encode())).status_code
            == 200
        )
    assert len(documents(client, buckets["ledger"], "rejected/")) == len(bad)
    states = {each["dropped_name"]: each["state"] for each in documents(client, buckets["ledger"], "status/")}
    assert states == {
        **dict.fromkeys(bad, "rejected"),
        "requests/good.yaml": "submitted",
        "notes.txt": "ignored",
    }
    assert sum("POST" in line for line in jobs_proxy.passed) == 1


def test_a_message_is_a_request_and_junk_for_a_log_entry_is_acknowledged(
    start: Callable[[str], Any], gcs: GcsObjects, buckets: dict[str, str]
) -> None:
    data = base64.b64encode(REQUEST.encode()).decode()
    with start("on_request_published") as function:
        assert function.publish({"messageId": "1", "data": data}).status_code == 200
        assert function.publish({"messageId": "1", "data": data}).status_code == 200
    (record,) = documents(gcs._client, buckets["ledger"], "runs/")
    assert record["source"]["message_id"] == "1"
    with start("on_job_log") as function:
        assert (
            function.publish({"messageId": "2", "data": base64.b64encode(b"junk").decode()}).status_code
            == 200
        )
        assert function.publish({"messageId": "3"}).status_code == 200


def test_a_line_that_metrics_count_is_printed_with_its_name(
    start: Callable[[str], Any], gcs: GcsObjects, buckets: dict[str, str]
) -> None:
    run_id = "m-20260101t000000-0123456789abcdef"
    Ledger(gcs, buckets["ledger"]).mark_active(run_id)
    gcs.write(buckets["ledger"], f"runs/{run_id}.json", b"[", if_generation=None)
    with start("on_tick") as function:
        assert function.publish({"messageId": "1", "data": ""}).status_code == 200
        (line,) = [json.loads(each) for each in function.output().splitlines() if run_id in each]
    assert (line["event"], line["severity"], line["run_id"]) == (LogEvent.RUN_NOT_RECONCILED, "ERROR", run_id)


def test_data_events_at_once_are_durable_and_the_function_only_ever_creates_objects(
    start: Callable[[str], Any], gcs: GcsObjects, buckets: dict[str, str], storage_proxy: Proxy
) -> None:
    def event(number: int, bucket: str = "data", **more: str) -> dict[str, str]:
        created = {"timeCreated": "2026-01-01T00:00:00Z"}
        return {
            "bucket": bucket,
            "name": f"{number}.jpg",
            "generation": str(number + 1),
            "size": "9",
            **created,
            **more,
        }

    with start("on_data_arrived") as function, ThreadPoolExecutor(16) as pool:
        before = len(storage_proxy.passed)
        no_data = [event(1, buckets["ledger"]), event(2, buckets["inbox"])]
        no_data += [event(3, name="x/_SUCCESS"), event(4, name="x/.part"), event(5, size="0")]
        events = [*map(event, range(64)), *no_data]
        answered = [answer.status_code for answer in pool.map(function.deliver, events)]
        assert answered == [200] * len(events), function.output()
        passed = storage_proxy.passed[before:]
    assert {line.partition(" ")[0] for line in passed} == {"POST"}
    arrivals = Arrivals(gcs, buckets["ledger"])
    names = arrivals.names(100)
    assert len(names) == len(passed)
    kept = [each.name for batch in arrivals.read(names) for each in batch.arrivals]
    assert sorted(kept) == sorted(f"{number}.jpg" for number in range(64))


def test_a_function_killed_between_job_and_record_leaves_one_job(
    start: Callable[[str], Any],
    gcs: GcsObjects,
    buckets: dict[str, str],
    storage_proxy: Proxy,
    vertex: VertexJobs,
) -> None:
    """SIGKILL while the write that would record the job is in flight; then the event is redelivered."""
    ledger = buckets["ledger"]
    event = dropped(gcs._client, buckets["inbox"], "requests/a.yaml", REQUEST.encode())
    with start("on_request_uploaded") as function:
        # After the cap's mark, its marker, the original, its reservation and its status, the sixth write records the job.
        storage_proxy.stall_at(f"POST /upload/storage/v1/b/{ledger}/", nth=6)
        delivery = subprocess.Popen(
            [sys.executable, "-c", DELIVER, function.url, json.dumps(event)], stderr=subprocess.DEVNULL
        )
        assert storage_proxy.stalled.wait(120)
        function.kill()
        delivery.wait()
        storage_proxy.let_go()
    (record,) = documents(gcs._client, ledger, "runs/")
    assert record["state"] == "reserved"
    assert len(vertex.of_run(record["run_id"], JobKind.CUSTOM, [REGION])) == 1
    with start("on_request_uploaded") as function:
        assert function.deliver(event).status_code == 500  # the killed process's lease is still valid
        assert "Traceback" not in function.output()
        expire_lease(gcs, ledger, record)
        assert function.deliver(event).status_code == 200
    (record,) = documents(gcs._client, ledger, "runs/")
    assert record["state"] in ("submitted", "running")  # the job ran meanwhile
    (job,) = vertex.of_run(record["run_id"], JobKind.CUSTOM, [REGION])
    assert record["job"]["name"] == job.name


DELIVER = """
import json, sys, httpx
httpx.post(sys.argv[1], json=json.loads(sys.argv[2]), timeout=120, headers={
    "ce-id": "1", "ce-source": "s", "ce-specversion": "1.0", "ce-time": "2026-01-01T00:00:00Z",
    "ce-type": "google.cloud.storage.object.v1.finalized"})
"""


def expire_lease(gcs: GcsObjects, ledger: str, record: dict[str, Any]) -> None:
    """Make the record look three minutes old."""
    record["submission"]["lease"]["expires_at"] = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    gcs.write(ledger, f"runs/{record['run_id']}.json", json.dumps(record).encode(), if_generation=None)
