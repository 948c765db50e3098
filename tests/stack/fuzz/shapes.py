"""The methods of the services that speak HTTP, with sound requests to each: what fuzzed ones are made of."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from tests.core.fuzz import seeds
from tests.judges.surfaces import calls
from tests.stack.fuzz.http_requests import Drawing, Shape
from tests.stack.services import filled_rule, path_of
from trainstack.logging.entry import SURFACE as LOGGING_SURFACE
from trainstack.pubsub.api.methods import services as pubsub_calls
from trainstack.storage.api.call import SURFACE as STORAGE_SURFACE
from trainstack.storage.api.routes import ROUTES
from trainstack.vertex.resources.methods import methods
from trainstack.vertex.resources.pipelines import CUSTOM_TASK
from trainstack.vertex.resources.rest import SURFACE as VERTEX_SURFACE

BUCKET = "bucket-1"
PROJECT = "my-project"
REGION = "us-central1"
PARENT = f"projects/{PROJECT}/locations/{REGION}"
_CONDITIONS = ("ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "generation")
_BUCKET = {"name": "bucket-2", "location": "US", "labels": {"a": "b"}, "versioning": {"enabled": False}}
_METADATA = {
    "name": "requests/a.yaml",
    "contentType": "text/plain",
    "metadata": {"state": "done"},
    "eventBasedHold": False,
    "customTime": "2026-03-01T11:00:00Z",
    "crc32c": "AAAAAA==",
    "md5Hash": "1B2M2Y8AsgTpgAmY7PhCfg==",
}
_COMPOSE = {
    "sourceObjects": [
        {"name": "a.txt", "generation": "1", "objectPreconditions": {"ifGenerationMatch": "1"}}
    ],
    "destination": {"contentType": "text/plain"},
}
_NOTIFICATION = {
    "topic": f"//pubsub.googleapis.com/projects/{PROJECT}/topics/t-1",
    "payload_format": "JSON_API_V1",
    "event_types": ["OBJECT_FINALIZE"],
    "custom_attributes": {"a": "b"},
    "object_name_prefix": "requests/",
}


def _related(metadata: bytes) -> bytes:
    return (
        b"--edge\r\ncontent-type: application/json\r\n\r\n" + metadata
        + b"\r\n--edge\r\ncontent-type: text/plain\r\n\r\nmedia\r\n--edge--"
    )  # fmt: skip


_UPLOAD = "/upload/storage/v1/b/{}/o?uploadType="
_UPLOADS = (
    Shape("POST", _UPLOAD + "media", query=("name", *_CONDITIONS), documents=[b"canary"]),
    Shape(
        "POST",
        _UPLOAD + "multipart",
        query=("name", *_CONDITIONS),
        documents=[_METADATA],
        headers=(("content-type", "multipart/related; boundary=edge"),),
        written=_related,
    ),
    Shape(
        "POST",
        _UPLOAD + "multipart",
        documents=[_related(json.dumps(_METADATA).encode())],
        headers=(("content-type", "multipart/related; boundary='edge'"),),
    ),
    Shape("POST", _UPLOAD + "resumable", query=("name", *_CONDITIONS), documents=[_METADATA]),
    Shape(
        "PUT",
        _UPLOAD + "resumable&upload_id={}",
        documents=[b"canary"],
        headers=(("content-range", "bytes 0-5/6"),),
    ),
    Shape("DELETE", _UPLOAD + "resumable&upload_id={}"),
)
_DOCUMENTS = {
    "objects.patch": _METADATA,
    "objects.copy": _METADATA,
    "objects.rewrite": _METADATA,
    "objects.compose": _COMPOSE,
    "buckets.insert": _BUCKET,
    "notifications.insert": _NOTIFICATION,
}
_OTHERWISE = ("objects.insert", "objects.cancelUpload", "buckets.delete")
STORAGE = Drawing(
    shapes=[
        *(
            Shape(
                route.verb,
                re.sub(r"\{\w+\}", "{}", path_of(route)),
                query=[*STORAGE_SURFACE.methods[route.name].kinds, "alt", "fields"],
                documents=[_DOCUMENTS[route.name]] if route.name in _DOCUMENTS else (),
            )
            for route in ROUTES
            if route.name not in _OTHERWISE
        ),
        *_UPLOADS,
        Shape("DELETE", "/storage/v1/b/no-{}"),
        Shape("POST", "/emulator/v1/injections", documents=[{"injections": [{"name": 3}]}]),
    ],
    words=[BUCKET, "a.txt", "requests/a.yaml", "a/../b", "../../a", "/etc/passwd", "storageLayout", "1"],
)


def _job(spec: dict[str, Any]) -> dict[str, Any]:
    return {"displayName": "a job", "labels": {"a": "b"}, "jobSpec": spec}


_SPEC = {
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1},
            "replicaCount": "1",
            "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
            "containerSpec": {
                "imageUri": "gcr.io/my-project/no-such-image:1",
                "args": ["--a=1"],
                "command": ["true"],
                "env": [{"name": "A", "value": "1"}],
            },
        }
    ],
    "baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/m/r"},
    "scheduling": {"timeout": "60s", "restartJobOnWorkerRestart": False, "strategy": "SPOT"},
}  # fmt: skip
_TUNING = {
    "displayName": "a study",
    "maxTrialCount": 2,
    "parallelTrialCount": 1,
    "studySpec": {
        "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
        "parameters": [
            {"parameterId": "lr", "doubleValueSpec": {"minValue": 0.1, "maxValue": 1}, "scaleType": "UNIT_LOG_SCALE"},
            {"parameterId": "units", "discreteValueSpec": {"values": [1, 2]}},
        ],
    },
    "trialJobSpec": _SPEC,
}  # fmt: skip
_BODIES: dict[str, dict[str, Any]] = {
    "CreateCustomJob": _job(_SPEC),
    "CreateHyperparameterTuningJob": _TUNING,
    "CreateTrainingPipeline": {
        "displayName": "a pipeline",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": _SPEC["workerPoolSpecs"]},
    },
    "UploadModel": {"model": {"displayName": "a model", "labels": {"a": "b"}, "versionAliases": ["live"]}, "modelId": "m"},
    "CreateEndpoint": {"displayName": "an endpoint", "labels": {"a": "b"}},
    "UpdateEndpoint": {"displayName": "an endpoint", "trafficSplit": {"1": 100}, "etag": "e"},
    "DeployModel": {
        "deployedModel": {
            "model": f"{PARENT}/models/m@1", "id": "1",
            "dedicatedResources": {"machineSpec": {"machineType": "n1-standard-4"}, "minReplicaCount": 1},
        },
        "trafficSplit": {"0": 100},
    },
    "UndeployModel": {"deployedModelId": "1", "trafficSplit": {"1": 100}},
    "MergeVersionAliases": {"versionAliases": ["live", "-old"]},
    "CreatePersistentResource": {"resourcePools": [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}]},
    "CreateContext": {"displayName": "a context", "schemaTitle": "system.Run", "metadata": {"a": 1, "b": {"c": [2]}}},
}  # fmt: skip
VERTEX = Drawing(
    shapes=[
        Shape("POST", f"/v1/{PARENT}/customJobs", documents=[_job(_SPEC)]),
        Shape("POST", f"/v1/{PARENT}/hyperparameterTuningJobs", documents=[_TUNING]),
        Shape("GET", f"/v1/{PARENT}/persistentResources"),
        Shape(
            "POST",
            "/emulator/v1/projects/{}/locations/{}/customJobs/{}:preempt",
            documents=[{"replica": "workerpool0-0"}],
        ),
        *(
            Shape(
                method.verb,
                filled_rule(method.path, "{}", "{}"),
                query=[*VERTEX_SURFACE.methods[method.name].kinds, "$alt"],
                documents=[_BODIES.get(method.name, {"displayName": "a name"})] if method.body else (),
            )
            for _, method in methods()
        ),
    ],
    words=[
        PROJECT,
        REGION,
        "default",
        "m@1",
        "123",
        "displayName",
        'labels.a="b"',
        "state=JOB_STATE_RUNNING",
        "name,state",
    ],
)

_RESOURCE = {"type": "ml_job", "labels": {"job_id": "1", "task_name": "service"}}
_WRITE = {
    "logName": f"projects/{PROJECT}/logs/ml.googleapis.com%2F1",
    "resource": _RESOURCE,
    "labels": {"a": "b"},
    "entries": [{"textPayload": "Job failed.", "severity": "ERROR", "timestamp": "2026-03-01T11:00:00Z"}],
    "partialSuccess": True,
}
_LIST = {
    "resourceNames": [f"projects/{PROJECT}"],
    "filter": 'resource.type="ml_job" AND severity>=ERROR',
    "orderBy": "timestamp desc",
    "pageSize": 10,
    "pageToken": "",
}
_SINK = {
    "name": "sink-1",
    "destination": f"pubsub.googleapis.com/projects/{PROJECT}/topics/t-1",
    "filter": 'resource.type="ml_job"',
    "description": "d",
    "disabled": True,
    "exclusions": [],
}
_LOGGED: Mapping[str, list[Any]] = {
    "entries.write": [_WRITE, {"entries": seeds.LOG_ENTRIES, "resource": _RESOURCE}],
    "entries.list": [_LIST],
    "sinks.create": [_SINK],
    "sinks.patch": [_SINK],
    "metrics.update": [{"filter": "severity>=ERROR", "description": "d"}],
}
LOGGING = Drawing(
    shapes=[
        Shape(verb, path, query=[*LOGGING_SURFACE.methods[name].kinds], documents=_LOGGED.get(name, ()))
        for name, (verb, path) in calls(LOGGING_SURFACE, "logging.v2", names="{}").items()
    ],
    words=[PROJECT, "projects", "sink-1", "filter", "folders", "ml.googleapis.com%2F1", "a AND ("],
)

_SUBSCRIPTION = {
    "topic": f"projects/{PROJECT}/topics/{PROJECT}",
    "ackDeadlineSeconds": 20,
    "filter": 'attributes.a = "b"',
    "retryPolicy": {"minimumBackoff": "1s", "maximumBackoff": "600s"},
    "deadLetterPolicy": {"deadLetterTopic": f"projects/{PROJECT}/topics/{PROJECT}", "maxDeliveryAttempts": 5},
    "expirationPolicy": {"ttl": "86400s"},
    "messageRetentionDuration": "600s",
    "pushConfig": {"pushEndpoint": "http://127.0.0.1:1/"},
}
_REQUESTS: Mapping[str, dict[str, Any]] = {
    "CreateTopic": {"labels": {"a": "b"}, "schemaSettings": {"schema": "s"}},
    "CreateSubscription": _SUBSCRIPTION,
    "Publish": {"messages": [{"data": "YQ==", "attributes": {"a": "b"}, "orderingKey": "k"}]},
    "Acknowledge": {"ackIds": ["1-2-3"]},
    "ModifyAckDeadline": {"ackIds": ["1-2-3"], "ackDeadlineSeconds": 10},
}
PUBSUB = Drawing(
    shapes=[
        Shape(
            method.verb,
            re.sub(r"\{\w+=([^}]*)\}", r"\1", method.path).replace("*", "{}"),
            query=("pageSize", "pageToken"),
            documents=[_REQUESTS[method.name]] if method.name in _REQUESTS else (),
        )
        for methods in pubsub_calls().values()
        for method in methods
        if method.name != "Pull"  # waits for messages
    ],
    words=[PROJECT, "topic-2", "_deleted-topic_", "goog", "attributes:a", "projects"],
)
"""Its topic and its subscription have the id of the project, which requests name most."""

_TAKEN = {
    "grants": [
        {"member": f"serviceAccount:*@{PROJECT}.iam.gserviceaccount.com", "role": "*", "resource": "a"}
    ],
    "permissions": [{"permission": "run.services.get", "resource": "*"}],
}
_PERMISSIONS = {"permissions": ["aiplatform.customJobs.create", "pubsub.topics.publish"]}
_TOKEN = {"scope": ["https://www.googleapis.com/auth/cloud-platform"], "lifetime": "300s"}
IAM = Drawing(
    shapes=[
        Shape("GET", "/v1/projects/{}"),
        *(
            shape
            for resource in ("projects/{}", "projects/{}/topics/{}", "projects/{}/serviceAccounts/{}")
            for shape in (
                Shape("GET", f"/v1/{resource}:getIamPolicy"),
                Shape("POST", f"/v1/{resource}:getIamPolicy", documents=[{}]),
                Shape("POST", f"/v1/{resource}:testIamPermissions", documents=[_PERMISSIONS]),
            )
        ),
        Shape("GET", "/v2/projects/{}/locations/{}/services/{}:getIamPolicy"),
        Shape("POST", "/v1/projects/-/serviceAccounts/{}:generateAccessToken", documents=[_TOKEN]),
        Shape("GET", "/emulator/v1/taken-grants"),
        Shape("POST", "/emulator/v1/taken-grants", documents=[_TAKEN]),
        Shape("DELETE", "/emulator/v1/taken-grants"),
    ],
    words=[
        *(PROJECT, REGION, "trainmaster-job-logs", "-", "pubsub.topics.publish"),
        f"tm-on-tick@{PROJECT}.iam.gserviceaccount.com",
    ],
)


def _event(kind: str, data: object) -> dict[str, object]:
    return {
        "id": "9",
        "source": "//pubsub.googleapis.com/projects/my-project/topics/t",
        "specversion": "1.0",
        "type": kind,
        "subject": "objects/requests/a.yaml",
        "time": "2026-01-01T00:00:00Z",
        "datacontenttype": "application/json",
        "data": data,
    }


def function_drawing(kind: str, data: list[Any]) -> Drawing:
    """Events of one type, whose data is made of these: in binary mode, in structured mode, and as background events."""
    binary = tuple(
        (f"ce-{key}", str(value)) for key, value in _event(kind, None).items() if key[:4] != "data"
    )
    legacy = {"eventId": "9", "timestamp": "2026-01-01T00:00:00Z", "eventType": "google.pubsub.topic.publish"}
    return Drawing(
        shapes=[
            Shape("POST", "/", documents=data, headers=binary),
            Shape(
                "POST",
                "/",
                documents=[_event(kind, each) for each in data],
                headers=(("content-type", "application/cloudevents+json"),),
            ),
            Shape(
                "POST",
                "/",
                documents=[
                    {"context": {**legacy, "resource": {"service": "s", "name": "n"}}, "data": data[0]}
                ],
            ),
        ],
        words=seeds.vocabulary(data),
    )


def pubsub_data(documents: list[Any]) -> list[Any]:
    """Each document as the data of a Pub/Sub event."""
    event: dict[str, Any] = seeds.MESSAGES[0]
    return [
        {
            **event,
            "message": {**event["message"], "data": base64.b64encode(json.dumps(each).encode()).decode()},
        }
        for each in documents
    ]
