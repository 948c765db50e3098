"""A model is whatever the chief left in one of the places for it; its metrics are what it wrote in metrics.json."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.core.roles import accepted, request
from tests.core.shipped import schema
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.locations import ModelLocation, model_locations
from trainmaster.orchestrator.core.completion.model import (
    MAX_METRICS,
    OTHER,
    FoundModel,
    ModelDirectory,
    ModelFile,
    find_first_model,
    find_model,
    format_of,
)
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, Original

URI = "gs://models/m/run/model/"
EXPORT_SCHEMA = schema("model_export.v1")


def found(
    *paths: str, metrics: object = None, manifest: object = None, measured: dict[str, float] | None = None
) -> FoundModel:
    files = tuple(ModelFile(path=path, size_bytes=3, generation=7, crc32c="AAAAAA==") for path in paths)
    contents: dict[str, Any] = {
        name: None if document is None else json.dumps(document).encode()
        for name, document in (("metrics", metrics), ("manifest", manifest))
    }
    return find_model(ModelDirectory(uri=URI, files=files, **contents), EXPORT_SCHEMA, measured)


@pytest.mark.parametrize("path", ["model.pt", "deep/er/weights.bin", "README.md", "metrics.json/oddly.named"])
def test_any_file_is_a_model(path: str) -> None:
    it = found(path)
    assert it.model is not None
    assert it.model.files is not None
    assert (it.model.uri, it.model.files.count, it.model.files.size_bytes) == (URI, 1, 3)
    assert it.problems == ()


def test_metrics_markers_and_other_replicas_folders_are_no_part_of_a_model() -> None:
    others = ("", "sub/", "metrics.json", "export.json", "workertemp_1/saved_model.pb", "a/workertemp_12/x")
    it = found("saved_model.pb", *others)
    assert [file.path for file in it.files] == ["saved_model.pb"]


def test_an_empty_directory_is_reported_with_its_uri() -> None:
    it = found()
    assert it.model is None
    (problem,) = it.problems
    assert problem.startswith(f"no model was found: {URI} holds nothing")
    assert "functions for plain files need its path with /gcs/ in place of gs://" in problem


def test_files_other_than_a_model_are_named() -> None:
    it = found("metrics.json", "workertemp_1/saved_model.pb", metrics={"accuracy": 1})
    assert it.model is None
    assert "only metrics.json, workertemp_1/saved_model.pb" in it.problems[0]


def test_metrics_come_from_metrics_json_then_the_manifest_then_the_service() -> None:
    it = found(
        "m.keras",
        metrics={"accuracy": 0.9},
        manifest={"metrics": {"accuracy": 0.8, "loss": 1}},
        measured={"accuracy": 0.7, "loss": 2.0, "speed": 3.0},
    )
    assert present(it.model).metrics == {"accuracy": 0.9, "loss": 1.0, "speed": 3.0}
    assert it.problems == ()


def test_the_manifest_names_metrics_of_a_training_that_diverged() -> None:
    it = found("m.keras", manifest={"metrics": {"accuracy": 0.5}, "not_finite": {"loss": "nan"}})
    assert it.model is not None
    assert (it.model.metrics, it.model.not_finite) == ({"accuracy": 0.5}, {"loss": "nan"})
    assert it.problems == ("the metric loss is nan: the training diverged",)
    several = found("m.keras", metrics={"loss": math.nan, "mae": math.inf, "val_loss": math.nan})
    assert several.problems == (
        "the metrics loss, val_loss are nan: the training diverged",
        "the metric mae is inf: the training diverged",
    )
    better = present(found("m.keras", manifest={"not_finite": {"loss": "nan"}}, metrics={"loss": 1.0}).model)
    assert (better.metrics, better.not_finite) == ({"loss": 1.0}, None)


def test_a_manifest_needs_no_field() -> None:
    it = found("m.onnx", manifest={})
    assert (present(it.model).dataset, it.problems) == (None, ())
    named = present(found("m.onnx", manifest={"dataset": {"name": "iris"}}).model)
    assert named.dataset is not None
    assert (named.dataset.name, named.dataset.version) == ("iris", None)


def test_a_manifest_of_other_files_is_not_believed_and_the_model_stays() -> None:
    it = found("m.pt", manifest={"files": [{"path": "m.pt", "size_bytes": 4}], "metrics": {"a": 1}})
    assert it.model is not None
    assert (it.model.metrics, it.model.manifest_uri) == ({}, None)
    assert it.problems == ("export.json was ignored: m.pt has 3 bytes, not 4",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "metrics.json: it is not JSON"),
        (b"\xff\xfe\x00", "metrics.json: it is not JSON"),
        (b"[1]", "metrics.json: expected an object of numbers by name, found list"),
        (b'{"a": "0.9", "b": true, "c": null, "ok": 1}', "metrics.json: expected a number for a, b, c"),
        (b"[" * 100_000, "metrics.json: it is nested deeper than 32 levels"),
        (b'{"a": NaN}', "the metric a is nan: the training diverged"),
    ],
)  # fmt: skip
def test_unreadable_metrics_are_reported_and_lose_no_model(content: bytes, problem: str) -> None:
    files = (ModelFile(path="m.pt", size_bytes=1, generation=1),)
    it = find_model(ModelDirectory(uri=URI, files=files, metrics=content), EXPORT_SCHEMA)
    assert set(present(it.model).metrics) <= {"ok"}
    assert it.problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("claimed", "listed", "problems"),
    [
        ("1B2M2Y8AsgTpgAmY7PhCfg==", "1B2M2Y8AsgTpgAmY7PhCfg==", 0),
        ("AAAAAAAAAAAAAAAAAAAAAA==", "1B2M2Y8AsgTpgAmY7PhCfg==", 1),
        ("AAAAAAAAAAAAAAAAAAAAAA==", None, 0),  # a composed object has no MD5 hash to compare
        (None, "1B2M2Y8AsgTpgAmY7PhCfg==", 0),
    ],
)
def test_a_manifest_with_wrong_hashes_is_ignored(
    claimed: str | None, listed: str | None, problems: int
) -> None:
    claim = {"path": "m.pt", "size_bytes": 3} | ({"md5": claimed} if claimed is not None else {})
    manifest = json.dumps({"files": [claim], "metrics": {"accuracy": 1.0}}).encode()
    files = (ModelFile(path="m.pt", size_bytes=3, generation=7, md5=listed),)
    it = find_model(ModelDirectory(uri=URI, files=files, manifest=manifest), EXPORT_SCHEMA)
    assert len(it.problems) == problems
    assert present(it.model).metrics == ({} if problems else {"accuracy": 1.0})


@pytest.mark.parametrize("key", ["metrics", "frameworks"])
def test_a_manifest_with_too_many_properties_is_ignored(
    key: str,
) -> None:
    value = 1.0 if key == "metrics" else "2.17"
    sound = found("m.pt", manifest={key: {f"m{number:04}": value for number in range(1000)}})
    assert not any("was ignored" in problem for problem in sound.problems)
    it = found("m.pt", manifest={key: {f"m{number:04}": value for number in range(1001)}})
    (problem,) = it.problems
    assert problem.startswith(f"export.json was ignored: $.{key}: too many entries; found 1001 entries")
    assert "at most 1000 entries" in problem
    assert present(it.model).metrics == {}


def test_metrics_are_bounded_in_number_and_size() -> None:
    it = found("m.pt", metrics={f"m{number:04}": number for number in range(MAX_METRICS + 50)})
    assert len(present(it.model).metrics) == MAX_METRICS
    assert it.problems == (
        f"metrics.json: {MAX_METRICS + 50} metrics; the first {MAX_METRICS} by name are recorded",
    )
    files = (ModelFile(path="m.pt", size_bytes=1, generation=1),)
    large = ModelDirectory(uri=URI, files=files, has_more=True, oversized=("metrics.json",))
    assert [problem.partition(" ")[0] for problem in find_model(large, EXPORT_SCHEMA).problems] == [
        "metrics.json",
        "the",
    ]


def test_a_directory_with_too_many_foreign_files_is_not_called_empty() -> None:
    full = ModelDirectory(uri=URI, has_more=True, is_named=True)
    (problem,) = find_first_model([full], EXPORT_SCHEMA).problems
    assert f"{URI} holds more than 20000 files; only the first were examined" in problem


def test_a_directory_that_may_not_be_read_says_why() -> None:
    denied = ModelDirectory(uri=URI, denied="storage.objects.list is not granted; grant it", is_named=True)
    (problem,) = find_first_model([denied], EXPORT_SCHEMA).problems
    assert f"{URI} cannot be read: storage.objects.list is not granted; grant it" in problem


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"], "saved_model"),
        (["model/saved_model.pb", "fingerprint.pb"], "saved_model"),
        (["classifier.keras"], "keras"),
        (["weights.H5"], "keras_h5"),
        (["model.tflite"], "tflite"),
        (["config.json", "model-00001-of-00002.safetensors", "tokenizer.json"], "hugging_face"),
        (["config.json", "pytorch_model.bin"], "hugging_face"),
        (["lora.safetensors"], "safetensors"),
        (["scripted.torchscript.pt"], "torchscript"),
        (["exported.pt2"], "torch_export"),
        (["model.onnx", "model.onnx.data"], "onnx"),
        (["epoch=3.ckpt"], "pytorch"),
        (["model.pt"], "pytorch"),
        (["model.ubj"], "xgboost"),
        (["model.bst"], "xgboost"),
        (["lightgbm_model.txt"], "lightgbm"),
        (["model.cbm"], "catboost"),
        (["state/_METADATA", "state/manifest.ocdbt"], "orbax"),
        (["params.msgpack"], "flax"),
        (["model.joblib"], "scikit_learn"),
        (["model.pkl"], "pickle"),
        (["ckpt-1.index", "ckpt-1.data-00000-of-00001"], "tensorflow_checkpoint"),
        (["weights.bin", "README"], OTHER),
        (["notes.txt"], OTHER),
        (["keras"], OTHER),
    ],
)  # fmt: skip
def test_the_format_follows_from_the_names_of_the_files(paths: list[str], expected: str) -> None:
    assert format_of(paths) == expected


START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORIGINAL = Original(uri="gs://ledger/submitted/run-1/0.json", sha256="0" * 64, dialect="trainmaster")
JOB = Job(
    name="projects/p/locations/r/customJobs/1",
    state=JobState.SUCCEEDED,
    create_time=START,
    start_time=START + timedelta(minutes=1),
)
OWN = ModelLocation(uri="gs://models/m/run-1/model/")


def places(job: Job, uri: str | None) -> tuple[ModelLocation, ...]:
    sound = accepted(request(model_uri=uri))
    on_record = AcceptedRequest(
        document=sound.document,
        original=ORIGINAL,
        model_name="m",
        output_uri="gs://models/m/run-1",
        model_uri=sound.spec.model_uri_of("run-1"),
    )
    return model_locations(job, on_record, sound.spec)


def test_a_place_that_runs_share_counts_from_the_start_of_the_job_on() -> None:
    uri = "gs://models/fixed"
    assert places(JOB, uri) == (ModelLocation(uri=uri, is_named=True, since=JOB.start_time), OWN)
    never_started = replace(JOB, start_time=None)
    assert places(never_started, uri)[0].since == START


def test_a_place_with_the_runs_id_in_it_is_the_runs_alone() -> None:
    (named, own) = places(JOB, "gs://models/x/${run_id}/")
    assert (named, own) == (ModelLocation(uri="gs://models/x/run-1", is_named=True), OWN)


def test_a_job_that_goes_on_has_no_place_and_a_request_without_one_only_the_usual() -> None:
    assert places(replace(JOB, state=JobState.RUNNING), "gs://models/fixed") == ()
    assert places(JOB, None) == (OWN,)
