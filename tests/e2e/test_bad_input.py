"""A faulty request gives a report with every fault, an acknowledged event and no job, and affects no other run."""

import json
import random
from typing import Any

import jsonschema
import pytest

from .project import ROOT, Project, image_uri, request

pytestmark = pytest.mark.slow


def own(project: str, **changes: object) -> dict[str, Any]:
    return {**json.loads(request(project)), **changes}


def broken_yaml(project: str) -> bytes:
    return b"model_name: line\nimage: [unclosed\ncluster: }{\n"


def unknown_keys(project: str) -> bytes:
    return json.dumps(own(project, clutser={}, scheduling={"timeuot_s": 60})).encode()


def wrong_types(project: str) -> bytes:
    return json.dumps(own(project, args="--epochs=2", cluster={"chief": {"machine": 4}})).encode()


def alias_bomb(project: str) -> bytes:
    levels = [b"a: &a [x, x, x, x, x, x, x, x, x]"]
    for above, here in zip("abcdefgh", "bcdefghi", strict=True):
        levels.append(f"{here}: &{here} [{', '.join([f'*{above}'] * 9)}]".encode())
    return b"\n".join(levels)


def fifty_megabytes(project: str) -> bytes:
    return request(project).encode() + b" " * 50_000_000


def binary_junk(project: str) -> bytes:
    return random.Random(3).randbytes(100_000)


def foreign_machine(project: str) -> bytes:
    return json.dumps(own(project, cluster={"chief": {"machine": "quantum-1"}})).encode()


def foreign_image(project: str) -> bytes:
    return json.dumps(own(project, image="docker.io/somebody/miner:latest")).encode()


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
    unknown_keys: ["$.clutser", "$.scheduling.timeuot_s"],
    wrong_types: ["$.args", "$.cluster.chief.machine"],
    alias_bomb: ["$"],
    fifty_megabytes: ["$"],
    binary_junk: ["$"],
    impossible_study: [
        "$.tuning.metrics[0].goal",
        "$.tuning.parallel_trials",
        "$.tuning.parameters.learning_rate.min",
        "$.tuning.parameters.momentum.scale",
        "$.tuning.parameters.num_unit",
        "$.tuning.parameters.num_units.values[1]",
        "$.tuning.parameters.weights.values",
    ],
    foreign_machine: ["$.cluster.chief.machine"],
    foreign_image: ["$.image"],
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
    jsonschema.validate(
        report, json.loads((ROOT / "schemas" / "rejection_report.v1.schema.json").read_text())
    )
    paths = [fault["path"] for fault in report["faults"]]
    for path in CASES[faulty]:
        assert any(found.startswith(path) for found in paths), report
    record = project.record(status["run_id"])
    assert record["state"] == "rejected"
    event_id = record["source"]["event_id"]
    project.eventually(lambda: set(project.requests_to_functions(event_id)) == {200}, "acknowledged at once")
    assert set(project.all_jobs()) == before


def test_a_misspelt_key_is_answered_with_the_nearest_known_one(project: Project) -> None:
    name = "requests/misspelt.yaml"
    document = own(project.id)
    project.upload(name, json.dumps({**document, "clutser": document.pop("cluster")}))
    run_id = project.final_status(name)["run_id"]
    report = project.document(project.ledger, f"rejected/{run_id}.json")
    assert report is not None
    (fault,) = [fault for fault in report["faults"] if fault["path"] == "$.clutser"]
    assert "cluster" in fault["repair"]


def test_a_faulty_message_is_rejected_on_record_and_acknowledged(project: Project) -> None:
    message_id = project.publish("trainmaster-requests", binary_junk(project.id))

    def record() -> dict[str, Any] | None:
        every = project.records().values()
        return next((each for each in every if each["source"].get("message_id") == message_id), None)

    assert project.eventually(record, "a record of the junk message")["state"] == "rejected"
    project.eventually(
        lambda: set(project.requests_to_functions(message_id)) == {200}, "acknowledged at once"
    )


def test_a_corrected_drop_of_the_same_name_is_a_run_of_its_own(project: Project) -> None:
    name = "requests/corrected.yaml"
    first = project.upload(name, broken_yaml(project.id))
    rejected = project.final_status(name, first)
    second = project.upload(name, request(project.id))
    corrected = project.final_status(name, second)
    assert (rejected["state"], corrected["state"]) == ("rejected", "succeeded")
    assert rejected["run_id"] != corrected["run_id"]
    assert project.record(corrected["run_id"])["request"]["document"]["image"].startswith(
        image_uri(project.id)
    )
