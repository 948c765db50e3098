"""A faulty request gives a report with every fault, an acknowledged event and no job, and affects no other run."""

import json
import random
from typing import Any

import jsonschema
import pytest

from trainmaster.client.submission.terms import schema

from .project import Project, request

pytestmark = pytest.mark.slow


def own(project: str, **changes: object) -> dict[str, Any]:
    return {**json.loads(request(project)), **changes}


def broken_yaml(project: str) -> bytes:
    return b"model_name: line\nimage: [unclosed\ncluster: }{\n"


def fifty_megabytes(project: str) -> bytes:
    return request(project).encode() + b" " * 50_000_000


def binary_junk(project: str) -> bytes:
    return random.Random(3).randbytes(100_000)


def impossible_study(project: str) -> bytes:
    tuning = {
        "metrics": [{"id": "accuracy", "goal": "biggest"}],
        "parameters": {
            "learning_rate": {"type": "double", "min": 0.1, "max": 0.0, "scale": "log"},
            "momentum": {"type": "double", "min": 0.0, "max": 0.9, "scale": "log"},
            "num_units": {"type": "discrete", "values": [64, 64]},
            "weights": {"type": "categorical", "values": []},
            "num_unit": {"type": "integer", "min": 1, "max": 8},
        },
        "max_trials": 4,
        "parallel_trials": 5,
    }
    image = f"us-central1-docker.pkg.dev/{project}/trainmaster/trainer:latest"
    return json.dumps(own(project, image=image, tuning=tuning)).encode()


CASES = {
    broken_yaml: ["$"],
    fifty_megabytes: ["$"],
    impossible_study: [
        "$.tuning.metrics[0].goal",
        "$.tuning.parallel_trials",
        "$.tuning.parameters.learning_rate.min",
        "$.tuning.parameters.momentum.scale",
        "$.tuning.parameters.num_unit",
        "$.tuning.parameters.num_units.values[1]",
        "$.tuning.parameters.weights.values",
    ],
}


@pytest.mark.parametrize("faulty", CASES, ids=lambda case: case.__name__)
def test_a_faulty_upload_is_reported_acknowledged_and_submits_nothing(faulty: Any, project: Project) -> None:
    name = f"requests/{faulty.__name__}.yaml"
    before = set(project.all_jobs())
    generation = project.upload(name, faulty(project.id))
    status = project.final_status(name, generation)
    assert status["state"] == "rejected"
    report = project.document(project.ledger, f"rejected/{status['run_id']}.json")
    assert report is not None
    assert status["report_uri"] == f"gs://{project.ledger}/rejected/{status['run_id']}.json"
    jsonschema.validate(report, schema("rejection_report.v1"))
    paths = [fault["path"] for fault in report["faults"]]
    for path in CASES[faulty]:
        assert any(found.startswith(path) for found in paths), report
    record = project.record(status["run_id"])
    assert record["state"] == "rejected"
    event_id = record["source"]["event_id"]
    project.eventually(lambda: set(project.requests_to_functions(event_id)) == {200}, "acknowledged at once")
    assert set(project.all_jobs()) == before


def test_a_faulty_message_is_rejected_on_record_and_acknowledged(project: Project) -> None:
    message_id = project.publish("trainmaster-requests", binary_junk(project.id))

    def record() -> dict[str, Any] | None:
        every = project.records().values()
        return next((each for each in every if each["source"].get("message_id") == message_id), None)

    assert project.eventually(record, "a record of the junk message")["state"] == "rejected"
    project.eventually(
        lambda: set(project.requests_to_functions(message_id)) == {200}, "acknowledged at once"
    )
