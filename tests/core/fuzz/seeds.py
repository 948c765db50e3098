"""The documents that fuzzed inputs are made of: the examples, and one of each message as its service writes it."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.core.ai_platform_job_cases import JOB_CASES
from tests.core.fuzz.mutation import places
from tests.core.requests.test_tuning import API
from tests.core.retraining.test_signal import INCIDENT, PUSH
from tests.core.shipped import ROOT, schema
from tests.core.vertex_files import job, job_spec, package_pool
from trainmaster.orchestrator.core.events.envelope import REPLAYED_ID, REPLAYED_PUBLISH_TIME
from trainmaster.orchestrator.core.events.self_test import DRY_RUN, MARK, NO_JOB_ID, SELF_TEST_ID

ORDER_SCHEMA = schema("order.v1")
EXPORT_SCHEMA = schema("model_export.v1")


def _read(*patterns: str) -> list[Any]:
    paths: Iterable[Path] = (path for pattern in patterns for path in sorted(ROOT.glob(pattern)))
    return [yaml.safe_load(path.read_text()) for path in paths]


def stored(kind: str) -> list[Any]:
    """The examples of a document that the service or its operator keeps."""
    return _read(f"schemas/examples/valid/{kind}.*")


def vocabulary(documents: list[Any]) -> list[str]:
    """Every key and every text in the documents: words that a parser knows, to stand where they should not."""
    found = {str(place[-1]) for document in documents for place in places(document) if place}
    return sorted(found | {text for document in documents for text in _texts(document)})


def _texts(document: Any) -> Iterable[str]:
    if isinstance(document, str):
        yield document
    inside = (
        document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    )
    for part in inside:
        yield from _texts(part)


OWN = [
    *_read("schemas/examples/valid/training_request.v1.*.yaml"),
    *_read("examples/cassava.yaml", "examples/tuning.yaml", "examples/roles.yaml"),
]
PACKED = {"displayName": "packed", "jobSpec": {"workerPoolSpecs": [package_pool(0), {}, package_pool(2)]}}
CUSTOM = [*_read("examples/vertex/custom-job.yaml"), job(), {"displayName": "bare", **job_spec()}, PACKED]
TUNING = [*_read("examples/vertex/hp-tuning-job.yaml"), API]
AI_PLATFORM = [*_read("examples/ai_platform/*.yaml"), *(dict(case.written) for case in JOB_CASES)]
RULES = [
    *_read("schemas/examples/valid/retraining_rule.v1.*.yaml", "examples/rules/*.yaml"),
    *({"when": [{"manual": {}}], "request": request} for request in TUNING),
]
ORDERS = _read("schemas/examples/valid/order.v1.*.yaml")
MODEL_URI = "gs://my-project-models/cassava/cassava-20260304t120000-0123456789/model/"
MANIFESTS: list[dict[str, Any]] = [
    {
        "schema": "model_export.v1",
        "model_uri": MODEL_URI,
        "created_at": "2026-03-04T13:00:00Z",
        "files": [{"path": "saved_model.pb", "size_bytes": 10, "sha256": "0f" * 32}],
        "metrics": {"accuracy": 0.93, "val_loss": 0.2},
        "class_names": ["healthy", "mosaic"],
        "image_size": [224, 224],
        "dataset": {"name": "cassava", "version": "0.1.0", "train_split": "train", "evaluation_split": None},
        "frameworks": {"tensorflow": "2.21.0"},
        "training": {"epochs": 3, "global_batch_size": 64, "replicas_in_sync": 2, "strategy": "mirrored"},
    }
]
NOTICES = _read("schemas/examples/valid/notice.v1.*.json")
PUSHES = [PUSH]
ALERTS = [INCIDENT]
UPLOADS = [
    {
        "bucket": "my-project-inbox",
        "name": "requests/team/cassava.yaml",
        "generation": "1700000000000000",
        "metageneration": "1",
        "size": "812",
        "timeCreated": "2026-03-01T11:00:00.123Z",
        "contentType": "application/yaml",
    }
]
MESSAGES: list[dict[str, Any]] = [
    {
        "message": {
            "data": base64.b64encode(json.dumps(ORDERS[0]).encode()).decode(),
            "attributes": {"idempotency_key": "order-7"},
            "messageId": "1234567",
            "publishTime": "2026-03-01T11:00:00.123Z",
            "orderingKey": "",
        },
        "subscription": "projects/my-project/subscriptions/requests",
        "deliveryAttempt": 1,
    },
    {
        "message": {
            "data": base64.b64encode(json.dumps(OWN[0]).encode()).decode(),
            "attributes": {
                REPLAYED_ID: "1234567",
                REPLAYED_PUBLISH_TIME: "2026-03-01T11:00:00.123456789Z",
                DRY_RUN: "true",
                SELF_TEST_ID: "0f" * 16,
            },
            "messageId": "1234568",
            "publishTime": "2026-03-02T11:00:00.123Z",
        }
    },
]
LOG_ENTRIES: list[dict[str, Any]] = [
    {
        "insertId": "1ab2c3",
        "logName": "projects/my-project/logs/ml.googleapis.com%2F123456789",
        "resource": {
            "type": "ml_job",
            "labels": {"job_id": "123456789", "task_name": "service", "project_id": "my-project"},
        },
        "labels": {"ml.googleapis.com/endpoint": ""},
        "textPayload": "Job completed successfully.",
        "severity": "INFO",
        "timestamp": "2026-03-01T11:00:00.123456789Z",
        "receiveTimestamp": "2026-03-01T11:00:01.5Z",
    },
    {
        "insertId": "1ab2c4",
        "logName": "projects/my-project/logs/ml.googleapis.com%2F123456789",
        "resource": {"type": "ml_job", "labels": {"job_id": "123456789", "task_name": "service"}},
        "jsonPayload": {"message": "Job failed."},
        "timestamp": "2026-03-01T11:00:00Z",
    },
    {
        "insertId": "1ab2c5",
        "logName": "projects/my-project/logs/ml.googleapis.com%2F123456789",
        "resource": {"type": "ml_job", "labels": {"job_id": NO_JOB_ID, "task_name": "service"}},
        "labels": {MARK: "0f" * 16},
        "jsonPayload": {"message": "Job completed successfully."},
        "timestamp": "2026-03-01T11:00:00Z",
    },
]
