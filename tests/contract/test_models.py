"""Whatever the chief leaves goes on record, with its files, format and metrics, whichever library wrote it."""

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from tests.contract.world import LEDGER, MODELS, World, schema
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.runs.job import Failure, JobState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

RECORD = Draft202012Validator(schema("run_record.v2"))
FILES = Draft202012Validator(schema("model_files.v1"))
CHAMPION = Draft202012Validator(schema("champion.v1"))
REQUEST: dict[str, Any] = {
    "model_name": "own-model",
    "image": "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest",
    "cluster": {"chief": {"machine": "n1-standard-8"}},
    "champion": {"metric": "val_accuracy", "goal": "maximize", "evaluation": "held-out 2026-10"},
}


def ended(world: World, name: str, state: JobState, files: Mapping[str, object]) -> RunRecord:
    """The record of a run whose chief left these files; a document is written as JSON."""
    arrival = world.drop(json.dumps(REQUEST).encode(), f"requests/{name}.json")
    world.launch(arrival)
    record = world.record(arrival.run_id)
    prefix = f"{record.output_uri}/model/".removeprefix(f"gs://{MODELS}/")
    for path, content in files.items():
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        world.objects.write(MODELS, prefix + path, body, if_generation=None)
    assert record.job is not None
    error = Failure(code=3, message="exit 1") if state is JobState.FAILED else None
    world.jobs.become(record.job.name, state, error=error)
    world.settle(world.hint(world.jobs.read(record.job.name)))
    RECORD.validate(world.document(f"runs/{arrival.run_id}.json"))
    return world.record(arrival.run_id)


def test_a_pytorch_model_is_on_record_with_its_metrics_and_every_file() -> None:
    world = World()
    left = {"model.pt": b"weights", "metrics.json": {"val_accuracy": 0.93}}
    model = ended(world, "torch", JobState.SUCCEEDED, left).model
    assert model is not None
    assert (model.format, model.metrics) == ("pytorch", {"val_accuracy": 0.93})
    assert model.files is not None
    assert model.files.listing_uri is not None
    bucket, name = split_object_uri(model.files.listing_uri)
    assert bucket == LEDGER
    listing = world.document(name)
    FILES.validate(listing)
    (file,) = listing["files"]
    # Of `weights`, by crc32c(3) and md5sum(1).
    assert (file["path"], file["size_bytes"], file["crc32c"]) == ("model.pt", 7, "kj6qRQ==")
    assert file["md5"] == "Y/Tx6bclNw9FlyBXXNX5Uw=="


def test_a_failed_runs_files_are_on_record_and_never_champion() -> None:
    world = World()
    record = ended(
        world, "failed", JobState.FAILED, {"last.ckpt": b"x", "metrics.json": {"val_accuracy": 0.99}}
    )
    assert record.state is RunState.FAILED
    assert record.model is not None
    assert record.model.format == "pytorch"
    assert not [each for each in world.objects.listing(LEDGER, "champions/") if each.name]


def test_a_failed_run_without_files_says_nothing_of_a_model() -> None:
    record = ended(World(), "empty", JobState.FAILED, {})
    assert (record.model, record.problems) == (None, ())


def test_a_champion_needs_a_metric_and_nothing_more() -> None:
    world = World()
    for name, value in (("first", 0.5), ("worse", 0.4), ("better", 0.9)):
        ended(world, name, JobState.SUCCEEDED, {"m.joblib": b"x", "metrics.json": {"val_accuracy": value}})
    ended(world, "silent", JobState.SUCCEEDED, {"m.joblib": b"x"})
    champion = world.document("champions/own-model.json")
    CHAMPION.validate(champion)
    assert champion["current"]["value"] == 0.9
    assert champion["current"]["contest"]["evaluation"] == "held-out 2026-10"
    reasons = [verdict["reason"] for verdict in champion["considered"]]
    assert reasons[1] == "val_accuracy 0.4 is not better than the champion's 0.5"
    assert reasons[3] == "the run has no metric 'val_accuracy'; it has: none"
