"""Requests and answers of the local stack over REST have the form that Google's discovery documents give them."""

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from tests.judges.discovery import api
from tests.judges.judged import Judged, error_faults
from tests.stack.services import deployed_grants, every_service
from trainmaster.deploy.doctor.deployment import GrantTarget
from trainmaster.deploy.doctor.questions import Questions
from trainstack.http import in_thread
from trainstack.iam.authorization import REQUIRED

IMAGE = Path(__file__).resolve().parents[1] / "stack/jobs/images/program"
DOCUMENTS = {
    "storage": ("storage.v1",),
    "logging": ("logging.v2",),
    "pubsub": ("pubsub.v1",),
    "vertex": ("aiplatform.v1", "aiplatform.v1beta1"),
    "monitoring": ("monitoring.v3",),
    "iam": ("cloudresourcemanager.v1", "iam.v1", "iamcredentials.v1", "pubsub.v1", "run.v2"),
}
"""The APIs of each service."""
PROJECT, REGION = "judged-project", "us-central1"
PROGRAM = "us-docker.pkg.dev/p1/repo/program"
BUCKET, TOPIC = f"{PROJECT}-models", f"projects/{PROJECT}/topics/trainmaster-notices"
SUBSCRIPTION = f"projects/{PROJECT}/subscriptions/judged"
JOBS = f"projects/{PROJECT}/locations/{REGION}"
TYPES = "type.googleapis.com/google.rpc."
DEADLINE_S = 120
NOT_REST = {"storage.batch", "storage.objects.cancelUpload", "pubsub.streamingPull"}
"""Of a session's URI; served over gRPC alone."""


@dataclass(kw_only=True)
class Stack:
    """Every service over REST, each before the judge, and the log entries that jobs wrote."""

    http: httpx.Client
    judged: dict[str, Judged] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)

    def call(self, service: str, verb: str, path: str, body: object = None, **options: Any) -> Any:
        """The answer's JSON, whatever its status."""
        if body is not None:
            options["json"] = body
        answer = self.http.request(verb, self.urls[service] + path, **options)
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.content and "json" in answer.headers["content-type"] else None

    def until(self, *call: Any, holds: Callable[[Any], bool]) -> Any:
        """The first answer to the call of which this holds."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds(found := self.call(*call)):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with in_thread(lambda: running(tmp_path_factory.mktemp("judged"))) as found:
        yield found


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Stack]:
    with httpx.Client(timeout=60, trust_env=False) as http:
        found = Stack(http=http)

        def judged(name: str, app: ASGIApp) -> Judged:
            found.judged[name] = Judged(app, *DOCUMENTS[name])
            return found.judged[name]

        async with every_service(
            folder, deployed_grants(PROJECT, ["vision"]), before=judged, images=lambda: {PROGRAM: IMAGE},
            write_log=found.entries.extend, grace_s=1.0, links=True,
        ) as services:  # fmt: skip
            found.urls = services.urls
            yield found


def sound(stack: Stack, service: str) -> None:
    assert stack.judged[service].methods
    assert not stack.judged[service].faults, "\n".join(stack.judged[service].faults)


def methods_of(service: str) -> set[str]:
    """The methods that the stack serves, as the discovery documents name them."""
    names = {name.partition(".")[2] for name in REQUIRED.keys() - NOT_REST if name.startswith(f"{service}.")}
    match service:
        case "vertex":
            return {f"projects.locations.{name}" for name in names}
        case "monitoring":
            return {f"projects.{name}" for name in names}
        case "logging":
            return {name if name.startswith("entries") else f"projects.{name}" for name in names}
        case _:
            return names


def test_cloud_storage(stack: Stack) -> None:
    bucket, call = f"/storage/v1/b/{BUCKET}", partial(stack.call, "storage")
    call("POST", f"/storage/v1/b?project={PROJECT}", {"name": BUCKET, "location": "US-CENTRAL1"})
    call("GET", f"/storage/v1/b?project={PROJECT}")
    call("GET", f"/storage/v1/projects/{PROJECT}/serviceAccount")
    for path in ("", "/storageLayout", "/iam", "/iam/testPermissions?permissions=storage.buckets.get"):
        call("GET", bucket + path)
    call("PATCH", bucket, {"labels": {"a": "b"}, "softDeletePolicy": {"retentionDurationSeconds": "0"}})
    call("PUT", bucket, {**call("GET", bucket), "acl": []})
    call("PUT", f"{bucket}/iam", {**call("GET", f"{bucket}/iam"), "bindings": []})
    locked = {"name": f"{PROJECT}-locked", "retentionPolicy": {"retentionPeriod": "1"}}
    call("POST", f"/storage/v1/b?project={PROJECT}", locked)
    call("POST", f"/storage/v1/b/{locked['name']}/lockRetentionPolicy?ifMetagenerationMatch=1")
    upload = f"/upload{bucket}/o"
    call(
        "POST", f"{upload}?uploadType=media&name=a.txt", content=b"x", headers={"content-type": "text/plain"}
    )
    metadata = {
        "name": "b.txt",
        "metadata": {"k": "v"},
        "contentType": "text/plain",
        "cacheControl": "no-store",
    }
    parts = f"--x\r\ncontent-type: application/json\r\n\r\n{json.dumps(metadata)}\r\n--x\r\ncontent-type: text/plain\r\n\r\ny\r\n--x--"
    of_parts = {"content-type": "multipart/related; boundary=x"}
    call("POST", f"{upload}?uploadType=multipart", content=parts.encode(), headers=of_parts)
    started = stack.http.post(
        f"{stack.urls['storage']}{upload}?uploadType=resumable&name=c.txt", json={"metadata": {"a": "b"}}
    )
    session = started.headers["location"].replace(stack.urls["storage"], "")
    call("PUT", session, content=b"zz")
    listing = "/o?delimiter=/&prefix=a&maxResults=1&versions=false"
    for path in ("/o/a.txt", "/o", listing, "/o/none", "/managedFolders"):
        call("GET", bucket + path)
    call("PATCH", f"{bucket}/o/a.txt", {"metadata": {"k": "w"}, "contentType": "text/html"})
    call("POST", f"{bucket}/o/a.txt/copyTo/b/{BUCKET}/o/d.txt", {})
    call("POST", f"{bucket}/o/a.txt/rewriteTo/b/{BUCKET}/o/e.txt", {})
    call("PUT", f"{bucket}/o/e.txt", {"contentType": "text/html", "metadata": {"k": "v"}, "acl": []})
    call("POST", f"{bucket}/o/e.txt/moveTo/o/g.txt")
    call("PATCH", bucket, {"softDeletePolicy": {"retentionDurationSeconds": "604800"}})
    call("DELETE", f"{bucket}/o/g.txt")
    (kept,) = call("GET", f"{bucket}/o?softDeleted=true")["items"]
    call("POST", f"{bucket}/o/g.txt/restore?generation={kept['generation']}")
    call("POST", f"{bucket}/o/f.txt/compose", {"sourceObjects": [{"name": "a.txt"}, {"name": "b.txt"}]})
    call("GET", f"{bucket}/managedFolders/vision%2F/iam")
    call("GET", f"{bucket}/managedFolders/vision%2F/iam/testPermissions?permissions=storage.objects.get")
    for path in ("/acl", "/defaultObjectAcl", "/o/a.txt/acl"):
        entry = call("POST", f"{bucket}{path}", {"entity": "user-a@b.c", "role": "READER"})
        for verb, body in (("PATCH", entry), ("PUT", entry), ("GET", None), ("DELETE", None)):
            call(verb, f"{bucket}{path}/user-a@b.c", body)
        call("GET", f"{bucket}{path}")
    notification = {
        "topic": f"//pubsub.googleapis.com/{TOPIC}",
        "payload_format": "JSON_API_V1",
        "event_types": ["OBJECT_FINALIZE"],
    }
    made = call("POST", f"{bucket}/notificationConfigs", notification)
    call("GET", f"{bucket}/notificationConfigs")
    call("GET", f"{bucket}/notificationConfigs/{made['id']}")
    call("DELETE", f"{bucket}/notificationConfigs/{made['id']}")
    call("DELETE", f"{bucket}/o/d.txt?ifGenerationMatch=1")
    call("DELETE", f"{bucket}/o/d.txt")
    call("DELETE", bucket)  # 409: it is not empty
    call("GET", "/storage/v1/b/none-such")
    call("POST", f"/storage/v1/b?project={PROJECT}", {"name": "empty-bucket"})
    call("DELETE", "/storage/v1/b/empty-bucket")
    sound(stack, "storage")
    assert {name for _, name in stack.judged["storage"].methods} >= methods_of("storage")


def test_pubsub(stack: Stack) -> None:
    call = partial(stack.call, "pubsub")
    call("PUT", f"/v1/{TOPIC}", {"name": TOPIC, "labels": {"a": "b"}})
    call("PUT", f"/v1/{TOPIC}", {"name": TOPIC})
    call("GET", f"/v1/{TOPIC}")
    call("GET", f"/v1/projects/{PROJECT}/topics?pageSize=1")
    subscription = {
        "name": SUBSCRIPTION,
        "topic": TOPIC,
        "ackDeadlineSeconds": 20,
        "messageRetentionDuration": "86400s",
        "expirationPolicy": {},
        "filter": 'attributes.k = "v"',
        "retryPolicy": {"minimumBackoff": "10s", "maximumBackoff": "600s"},
        "deadLetterPolicy": {"deadLetterTopic": TOPIC, "maxDeliveryAttempts": 5},
    }
    call("PUT", f"/v1/{SUBSCRIPTION}", subscription)
    call("GET", f"/v1/{SUBSCRIPTION}")
    call("GET", f"/v1/projects/{PROJECT}/subscriptions")
    call("GET", f"/v1/{TOPIC}/subscriptions")
    change = {
        "subscription": {"name": SUBSCRIPTION, "ackDeadlineSeconds": 30},
        "updateMask": "ackDeadlineSeconds",
    }
    call("PATCH", f"/v1/{SUBSCRIPTION}", change)
    call("PATCH", f"/v1/{TOPIC}", {"topic": {"name": TOPIC, "labels": {"a": "c"}}, "updateMask": "labels"})
    messages = [{"data": "eA==", "attributes": {"k": "v"}, "orderingKey": "o"}]
    call("POST", f"/v1/{TOPIC}:publish", {"messages": messages})
    received = stack.until("pubsub", "POST", f"/v1/{SUBSCRIPTION}:pull", {"maxMessages": 1}, holds=bool)
    ids = {"ackIds": [received["receivedMessages"][0]["ackId"]]}
    call("POST", f"/v1/{SUBSCRIPTION}:modifyAckDeadline", {**ids, "ackDeadlineSeconds": 30})
    call("POST", f"/v1/{SUBSCRIPTION}:acknowledge", ids)
    snapshot = f"projects/{PROJECT}/snapshots/judged"
    call("PUT", f"/v1/{snapshot}", {"subscription": SUBSCRIPTION, "labels": {"a": "b"}})
    for path in (snapshot, f"projects/{PROJECT}/snapshots", f"{TOPIC}/snapshots"):
        call("GET", f"/v1/{path}")
    call("PATCH", f"/v1/{snapshot}", {"snapshot": {"name": snapshot, "labels": {}}, "updateMask": "labels"})
    call("POST", f"/v1/{SUBSCRIPTION}:seek", {"snapshot": snapshot})
    call("POST", f"/v1/{SUBSCRIPTION}:seek", {"time": "2026-01-01T00:00:00Z"})
    for path in (TOPIC, SUBSCRIPTION, snapshot, f"projects/{PROJECT}/schemas/policy"):
        policy = call("GET", f"/v1/{path}:getIamPolicy?options.requestedPolicyVersion=3")
        call("POST", f"/v1/{path}:setIamPolicy", {"policy": policy})
        call("POST", f"/v1/{path}:testIamPermissions", {"permissions": ["pubsub.topics.get"]})
    call("POST", f"/v1/{SUBSCRIPTION}:detach")
    schemas = f"/v1/projects/{PROJECT}/schemas"
    schema = {"name": f"{schemas[4:]}/judged", "type": "AVRO", "definition": '"string"'}
    made = call("POST", f"{schemas}?schemaId=judged", schema)
    call("POST", f"{schemas}/judged:commit", {"schema": schema})
    call("POST", f"{schemas}/judged:rollback", {"revisionId": made["revisionId"]})
    for tail in ("", "/judged?view=BASIC", "/judged:listRevisions"):
        call("GET", f"{schemas}{tail}")
    call("POST", f"{schemas}:validate", {"schema": schema})
    message = {"message": "ImEi", "encoding": "JSON"}
    call("POST", f"{schemas}:validateMessage", {"name": made["name"], **message})
    call("DELETE", f"{schemas}/judged@{made['revisionId']}:deleteRevision")
    call("DELETE", f"{schemas}/judged")
    for path in (snapshot, SUBSCRIPTION, TOPIC, TOPIC):
        call("DELETE", f"/v1/{path}")
    sound(stack, "pubsub")
    called = {name for _, name in stack.judged["pubsub"].methods}
    assert called >= {
        f"projects.{kind}.{verb}" for kind in ("topics", "subscriptions") for verb in ("create", "get", "list", "delete")
    } | {"projects.topics.publish", "projects.topics.subscriptions.list"} | {
        f"projects.subscriptions.{verb}" for verb in ("pull", "acknowledge", "modifyAckDeadline")
    }  # fmt: skip
    served = {name for name in methods_of("pubsub") if "Iam" not in name}
    assert len({name for name in called if "Iam" not in name}) == len(served)
    assert len(called - {f"projects.schemas.{verb}IamPolicy" for verb in ("get", "set")}) == len(served) + 10


def test_cloud_logging(stack: Stack) -> None:
    call, sink = partial(stack.call, "logging"), f"/v2/projects/{PROJECT}/sinks"
    entry = {
        "logName": f"projects/{PROJECT}/logs/a%2Fb",
        "resource": {"type": "ml_job", "labels": {"job_id": "1"}},
        "severity": "ERROR",
        "labels": {"k": "v"},
        "httpRequest": {"requestMethod": "GET", "status": 200, "latency": "0.1s", "responseSize": "12"},
        "sourceLocation": {"file": "a.py", "line": "3"},
        "operation": {"id": "1", "first": True},
    }
    entries = [
        {**entry, "textPayload": "x"},
        {**entry, "jsonPayload": {"message": "y", "n": 1}, "insertId": "i"},
    ]
    call("POST", "/v2/entries:write", {"entries": entries, "partialSuccess": True})
    call("POST", "/v2/entries:write", {"entries": [{"textPayload": "no name"}]})
    listing = {
        "resourceNames": [f"projects/{PROJECT}"],
        "filter": "severity>=ERROR",
        "orderBy": "timestamp desc",
    }
    page = call("POST", "/v2/entries:list", {**listing, "pageSize": 1})
    assert len(page["entries"]) == 1
    call("POST", "/v2/entries:list", {**listing, "pageToken": page["nextPageToken"]})
    call("POST", "/v2/entries:list", {**listing, "filter": "("})
    body = {"name": "s", "destination": f"pubsub.googleapis.com/{TOPIC}", "filter": "severity>=ERROR"}
    for _ in range(2):
        call("POST", f"{sink}?uniqueWriterIdentity=true", body)
    call("GET", sink)
    call("GET", f"{sink}/s")
    call("PUT", f"{sink}/s", body)
    call("PATCH", f"{sink}/s?updateMask=filter", {"filter": ""})
    for _ in range(2):
        call("DELETE", f"{sink}/s")
    metric = f"/v2/projects/{PROJECT}/metrics"
    call("POST", metric, {"name": "m", "filter": "severity>=ERROR", "description": "d"})
    call("PUT", f"{metric}/m", {"name": "m", "filter": "severity>=INFO"})
    for _ in range(2):
        call("GET", metric)
        call("GET", f"{metric}/m")
        call("DELETE", f"{metric}/m")
    call("GET", f"/v2/projects/{PROJECT}/logs")
    call("DELETE", f"/v2/projects/{PROJECT}/logs/a%2Fb")
    sound(stack, "logging")
    assert {name for _, name in stack.judged["logging"].methods} >= methods_of("logging")


POOL = {
    "machineSpec": {
        "machineType": "n1-standard-4",
        "acceleratorType": "NVIDIA_TESLA_T4",
        "acceleratorCount": 1,
    },
    "replicaCount": "1",
    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
}


def job(*args: str) -> dict[str, Any]:
    """A CustomJobSpec whose only replica does what the arguments say."""
    container = {"imageUri": f"{PROGRAM}:latest", "args": list(args), "env": [{"name": "A", "value": "b"}]}
    return {
        "workerPoolSpecs": [{**POOL, "containerSpec": container}],
        "scheduling": {"timeout": "3600s", "strategy": "SPOT", "disableRetries": True},
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/out"},
    }


REPORT = """
import json, os, pathlib, sys, time
line = {"accuracy": 0.5, "global_step": 3, "timestamp": 1, "trial": os.environ["CLOUD_ML_TRIAL_ID"], "checkpoint_path": ""}
pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"]).write_text(json.dumps(line))
time.sleep(float(sys.argv[1]))
"""


def study(seconds: str) -> dict[str, Any]:
    """A tuning job whose trials report one value and then sleep."""
    container = {"imageUri": f"{PROGRAM}:latest", "command": ["python"], "args": ["-c", REPORT, seconds]}
    parameters = [
        {"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}},
        {"parameterId": "n", "integerValueSpec": {"minValue": "1", "maxValue": "3"}},
        {"parameterId": "c", "categoricalValueSpec": {"values": ["a", "b"]}},
    ]
    return {
        "displayName": "d",
        "maxTrialCount": 2,
        "parallelTrialCount": 2,
        "studySpec": {"metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}], "parameters": parameters},
        "trialJobSpec": {"workerPoolSpecs": [{**POOL, "containerSpec": container}]},
    }


BODIES: dict[str, dict[str, Any]] = {
    "customJobs": {
        state: {"displayName": "d", "labels": {"a": "b"}, "jobSpec": job(does)}
        for state, does in (("SUCCEEDED", "print=x"), ("FAILED", "exit=3"), ("CANCELLED", "sleep=600"))
    },
    "hyperparameterTuningJobs": {"SUCCEEDED": study("0"), "CANCELLED": study("600")},
}
"""Jobs of each kind by the state in which they end; those that are cancelled would sleep."""


def ended(found: Any) -> bool:
    return found["state"].rpartition("_")[2] in {"SUCCEEDED", "FAILED", "CANCELLED"}


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_vertex_ai(stack: Stack, version: str) -> None:
    for kind, bodies in BODIES.items():
        path = f"/{version}/{JOBS}/{kind}"
        names = {state: stack.call("vertex", "POST", path, body)["name"] for state, body in bodies.items()}
        stack.call("vertex", "POST", f"/{version}/{names['CANCELLED']}:cancel", {})
        for state, name in names.items():
            found = stack.until("vertex", "GET", f"/{version}/{name}", holds=ended)
            assert found["state"] == f"JOB_STATE_{state}", found
        stack.call("vertex", "GET", f"{path}?pageSize=1&filter=displayName%3D%22d%22")
        stack.call("vertex", "GET", path)
        stack.call("vertex", "POST", f"/{version}/{names['SUCCEEDED']}:cancel", {})
        for verb in ("DELETE", "GET"):
            stack.call("vertex", verb, f"/{version}/{names['SUCCEEDED']}")
        stack.call("vertex", "POST", path, {"displayName": "d"})
    sound(stack, "vertex")
    called = {name for each, name in stack.judged["vertex"].methods if each == f"aiplatform.{version}"}
    assert called == {name for name in methods_of("vertex") if "Jobs." in name}
    assert len(stack.entries) > 10
    for entry in stack.entries:
        assert api("logging.v2").faults("LogEntry", entry) == []


def test_cloud_monitoring(stack: Stack) -> None:
    stack.call("storage", "POST", f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
    stack.call("vertex", "POST", f"/v1/{JOBS}/customJobs", BODIES["customJobs"]["SUCCEEDED"])
    metric, until = "ml.googleapis.com/training/cpu/utilization", datetime.now(UTC) + timedelta(hours=1)
    interval = (
        f"interval.startTime=2026-01-01T00:00:00Z&interval.endTime={until:%Y-%m-%dT%H:%M:%SZ}&view=FULL"
    )
    aggregation = "aggregation.alignmentPeriod=3600s&aggregation.perSeriesAligner=ALIGN_MEAN&aggregation.crossSeriesReducer=REDUCE_MEAN"
    path = f"/v3/projects/{PROJECT}/timeSeries?filter=metric.type%3D%22{metric}%22&{interval}"
    stack.until("monitoring", "GET", path, holds=lambda found: found.get("timeSeries"))
    stack.call("monitoring", "GET", f"{path}&pageSize=1")
    stack.call("monitoring", "GET", f"{path}&{aggregation}&aggregation.groupByFields=resource.labels.job_id")
    stack.call("monitoring", "GET", path.replace("ml.google", "of.google"))
    stack.call("monitoring", "GET", path.replace("metric.type", "metric.kind"))
    sound(stack, "monitoring")
    assert {name for _, name in stack.judged["monitoring"].methods} == methods_of("monitoring")


def test_permissions_and_what_the_doctor_asks(stack: Stack) -> None:
    questions = Questions(project=PROJECT, iam=stack.urls["iam"], storage=stack.urls["storage"])
    email = f"tm-on-tick@{PROJECT}.iam.gserviceaccount.com"
    questions.project_number(PROJECT)
    questions.token(email)
    stack.call("storage", "POST", f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
    for kind, resource in (
        ("project", f"projects/{PROJECT}"),
        ("topic", TOPIC),
        ("subscription", SUBSCRIPTION),
        ("account", f"projects/{PROJECT}/serviceAccounts/{email}"),
        ("function", f"projects/{PROJECT}/locations/{REGION}/services/on-tick"),
        ("bucket", f"projects/_/buckets/{BUCKET}"),
        ("folder", f"projects/_/buckets/{BUCKET}/managedFolders/vision/"),
    ):
        thing = GrantTarget(kind=kind, name=BUCKET, resource=resource)
        questions.held_permissions(thing, ["storage.objects.get"])
        questions.policy(thing)
    # The doctor asks for no permissions on a single object: its policy is the bucket's.
    questions.policy(GrantTarget(kind="object", name="a", resource=f"projects/_/buckets/{BUCKET}/objects/a"))
    questions.close()
    stack.call("iam", "GET", "/v1/projects/another-project")
    sound(stack, "iam")
    sound(stack, "storage")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"code": 404, "message": "x", "status": "NOT_FOUND"}, ""),
        ({"code": 400, "message": "x", "status": "NOT_FOUND"}, "no error of status 404"),
        ({"code": 404, "status": "NOT_FOUND"}, "no error of status 404 with a message"),
        ({"code": 404, "message": "x"}, "neither a canonical code nor a list of errors"),
        ({"code": 404, "message": "x", "status": "MISSING"}, "MISSING is not a canonical code"),
        ({"code": 404, "message": "x", "errors": [{"why": "y"}]}, "not an item of `errors`"),
        (
            {
                "code": 404,
                "message": "x",
                "status": "NOT_FOUND",
                "details": [{"@type": f"{TYPES}ErrorInfo", "why": "y"}],
            },
            'no field named "why"',
        ),
    ],
)
def test_a_refusal_has_the_form_that_clients_read(error: dict[str, Any], words: str) -> None:
    faults = "".join(error_faults(404, {"error": error}))
    assert words in faults
    assert bool(words) == bool(faults)
