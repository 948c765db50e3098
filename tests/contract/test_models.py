"""The model that the chief leaves is recorded with its files, format and metrics, whichever library wrote it."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.schemas import FILES, RECORD
from tests.contract.world import LEDGER, Boundary, World, request_rules_with
from tests.core.roles import TUNING
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.index_row import index_row_of
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.runs.job import Failure, JobState, Measured, Progress, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

REQUEST: dict[str, Any] = {
    "model_name": "own-model",
    "image": "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest",
    "cluster": {"chief": {"machine": "n1-standard-8"}},
    "champion": {"metric": "val_accuracy", "goal": "maximize", "evaluation": "held-out 2026-10"},
}


def ended(
    world: World,
    name: str,
    state: JobState,
    files: Mapping[str, object],
    request: Mapping[str, Any] = REQUEST,
    elsewhere: Mapping[str, object] | None = None,
) -> RunRecord:
    """The record of a run whose chief left these files in AIP_MODEL_DIR, and those at `gs://` URIs.

    A document is written as JSON; `RUN_ID` in a URI is the run's.
    """
    incoming = world.drop_and_launch(json.dumps(request).encode(), f"requests/{name}.json")
    record = world.record(incoming.run_id)
    assert record.job is not None
    world.clock.advance(timedelta(seconds=60))
    world.jobs.become(record.job.name, JobState.RUNNING)
    left = {f"{record.output_uri}/model/{path}": content for path, content in files.items()}
    for uri, content in {**left, **(elsewhere or {})}.items():
        put(world, uri.replace("RUN_ID", incoming.run_id), content)
    error = Failure(code=3, message="exit 1") if state is JobState.FAILED else None
    world.jobs.become(record.job.name, state, error=error)
    world.complete(world.hint(world.jobs.read(record.job.name)))
    RECORD.validate(world.document(f"runs/{incoming.run_id}.json"))
    return world.record(incoming.run_id)


def put(world: World, uri: str, content: object) -> None:
    bucket, name = split_object_uri(uri)
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    world.objects.write(bucket, name, body, if_generation=None)


def test_a_pytorch_model_is_on_record_with_its_metrics_and_every_file(world: World) -> None:
    left = {"model.pt": b"weights", "metrics.json": {"val_accuracy": 0.93}}
    model = present(ended(world, "torch", JobState.SUCCEEDED, left).model)
    assert (model.format, model.metrics) == ("pytorch", {"val_accuracy": 0.93})
    bucket, name = split_object_uri(present(present(model.files).listing_uri))
    assert bucket == LEDGER
    listing = world.document(name)
    FILES.validate(listing)
    (file,) = listing["files"]
    # Of `weights`, by crc32c(3) and md5sum(1).
    assert (file["path"], file["size_bytes"], file["crc32c"]) == ("model.pt", 7, "kj6qRQ==")
    assert file["md5"] == "Y/Tx6bclNw9FlyBXXNX5Uw=="


def test_a_failed_runs_files_are_on_record_and_never_champion(world: World) -> None:
    record = ended(
        world, "failed", JobState.FAILED, {"last.ckpt": b"x", "metrics.json": {"val_accuracy": 0.99}}
    )
    assert record.state is RunState.FAILED
    assert present(record.model).format == "pytorch"
    assert not [each for each in world.objects.listing(LEDGER, "champions/") if each.name]


def test_a_run_whose_metric_is_nan_is_no_champion_because_it_diverged(world: World) -> None:
    metrics = {"val_accuracy": float("nan"), "val_within": 0}
    record = ended(world, "diverged", JobState.SUCCEEDED, {"m.joblib": b"x", "metrics.json": metrics})
    assert record.problems == ("the metric val_accuracy is nan: the training diverged",)
    (verdict,) = world.document("champions/own-model.json")["considered"]
    assert verdict["reason"] == "the run's metric 'val_accuracy' is nan: the training diverged"


def elsewhere(uri: str, **changes: object) -> dict[str, Any]:
    """The request of a program that saves at this URI."""
    without = {key: value for key, value in REQUEST.items() if key != "champion"}
    return {**without, "model_uri": uri, **changes}


ANYWHERE = {"output_prefixes": ("gs://codelab",)}


@pytest.mark.parametrize(
    ("uri", "saved", "recorded"),
    [
        ("gs://models/out/${run_id}/", "gs://models/out/RUN_ID/saved_model.pb", "gs://models/out/RUN_ID/"),
        ("gs://codelab/saved", "gs://codelab/saved/1/saved_model.pb", "gs://codelab/saved/"),
        ("gs://codelab/saved/m.pb", "gs://codelab/saved/m.pb", "gs://codelab/saved/m.pb"),
        ("gs://codelab/m.pb", "gs://codelab/m.pb", "gs://codelab/m.pb"),
    ],
)
def test_a_model_saved_elsewhere_is_recorded_with_metrics_beside_it(
    uri: str, saved: str, recorded: str
) -> None:
    world = World(request_rules_with(**ANYWHERE))
    folder = saved.rpartition("/")[0] if recorded == saved else recorded.rstrip("/")
    left = {saved: b"model", f"{folder}/metrics.json": {"val_accuracy": 0.9}}
    record = ended(world, "codelab", JobState.SUCCEEDED, {}, elsewhere(uri), left)
    assert record.model is not None
    assert record.model.uri == recorded.replace("RUN_ID", record.run_id)
    assert (record.model.metrics, record.problems) == ({"val_accuracy": 0.9}, ())
    assert present(record.model.files).count == 1


def test_files_of_an_earlier_run_at_a_fixed_path_are_no_model_of_this_one(world: World) -> None:
    request = elsewhere("gs://models/fixed")
    first = ended(world, "first", JobState.SUCCEEDED, {}, request, {"gs://models/fixed/model.h5": b"1"})
    assert first.model is not None
    second = ended(world, "second", JobState.SUCCEEDED, {}, request)
    assert second.model is None
    (problem,) = second.problems
    assert (
        "gs://models/fixed/ holds files older than the job's start, 2026-03-01T12:02:00Z: model.h5" in problem
    )
    third = ended(world, "third", JobState.SUCCEEDED, {}, request, {"gs://models/fixed/weights.pt": b"3"})
    assert third.model is not None
    assert (third.model.format, third.model.files and third.model.files.count) == ("pytorch", 1)
    assert third.problems[0].endswith("model.h5, which were not recorded")


def begun(world: World, name: str, request: Mapping[str, Any]) -> RunRecord:
    """The record of a run whose job has begun to run, as the service's log line reports it."""
    incoming = world.drop_and_launch(json.dumps(request).encode(), f"requests/{name}.json")
    world.clock.advance(timedelta(seconds=60))
    job = present(world.record(incoming.run_id).job)
    running = world.jobs.become(job.name, JobState.RUNNING)
    world.complete(world.hint(running, tells_end=False))
    return world.record(incoming.run_id)


@pytest.mark.parametrize(
    ("model_uri", "earlier", "own"),
    [
        ("gs://models/codelab", "gs://models/codelab/saved_model.pb", "gs://models/codelab/${run_id}"),
        (
            "gs://models/codelab/m.keras",
            "gs://models/codelab/m.keras",
            "gs://models/codelab/${run_id}/m.keras",
        ),
    ],
)
def test_a_run_warns_that_it_may_overwrite_an_earlier_model(model_uri: str, earlier: str, own: str) -> None:
    world = World()
    request = {key: value for key, value in REQUEST.items() if key != "champion"} | {"model_uri": model_uri}
    assert begun(world, "first", request).problems == ()
    put(world, earlier, b"first")
    second = begun(world, "second", request)
    (problem,) = second.problems
    assert "contains files older than the job's start" in problem
    assert problem.endswith(f"with ${{run_id}} in model_uri, for example {own}")
    assert world.document("status/requests/second.json.json")["problems"] == [problem]
    put(world, earlier, b"second")
    world.complete(world.hint(world.jobs.become(present(second.job).name, JobState.SUCCEEDED)))
    ended_record = world.record(second.run_id)
    assert (ended_record.state, ended_record.problems) == (RunState.SUCCEEDED, (problem,))


@pytest.mark.parametrize("model_uri", ["gs://models/codelab/${run_id}", None])
def test_a_run_with_its_own_directory_lists_nothing_as_it_begins(world: World, model_uri: str | None) -> None:
    put(world, "gs://models/codelab/saved_model.pb", b"earlier")
    changes = {"model_uri": model_uri} if model_uri else {}
    record = begun(world, "own", {**REQUEST, **changes})
    assert (record.state, record.problems) == (RunState.RUNNING, ())
    boundary = Boundary()
    world.reconcile(boundary)
    assert "list models" not in boundary.calls


def test_metrics_of_an_earlier_run_at_a_fixed_path_are_not_this_ones(world: World) -> None:
    put(world, "gs://models/fixed/metrics.json", {"val_accuracy": 1.0})
    record = ended(
        world, "own", JobState.SUCCEEDED, {}, elsewhere("gs://models/fixed"), {"gs://models/fixed/m.pt": b"x"}
    )
    assert present(record.model).metrics == {}


def test_the_directories_of_other_runs_below_a_fixed_path_are_skipped(world: World) -> None:
    request = elsewhere("gs://models/own-model")
    other = "gs://models/own-model/other-20260301t120000-0123456789/model/saved_model.pb"
    record = ended(world, "own", JobState.SUCCEEDED, {}, request, {other: b"x"})
    assert record.model is None


def test_an_evaluation_leaves_metrics_without_a_model_and_is_told_from_a_run_that_left_neither() -> None:
    evaluation = ended(World(), "scores", JobState.SUCCEEDED, {"metrics.json": {"auc": 0.9, "n": 5}})
    assert evaluation.progress == Progress(metrics={"auc": 0.9, "n": 5})
    assert evaluation.problems == (
        f"no model was found: {evaluation.output_uri}/model/ holds only metrics.json",
    )
    nothing = ended(World(), "nothing", JobState.SUCCEEDED, {})
    trained = ended(World(), "trained", JobState.SUCCEEDED, {"m.pt": b"x"})
    reasons = [index_row_of(record, 1).reason for record in (evaluation, nothing, trained)]
    assert reasons == ["no model, only metrics", "no model", None]


def test_a_model_in_the_usual_place_is_recorded_where_the_named_one_holds_none() -> None:
    record = ended(World(), "own", JobState.SUCCEEDED, {"m.pt": b"x"}, elsewhere("gs://models/nowhere"))
    assert present(record.model).uri == f"{record.output_uri}/model/"
    assert record.problems == ("gs://models/nowhere/ holds nothing: no model",)


LEGACY: dict[str, Any] = {
    "trainingInput": {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-4",
        "masterConfig": {"imageUri": REQUEST["image"]},
        "useChiefInTfConfig": True,
        "region": "us-central1",
        "jobDir": "gs://models/jobs/census",
    }
}


@pytest.mark.parametrize("own_directory", [False, True])
def test_a_model_in_the_usual_place_comes_before_one_in_the_job_dir(own_directory: bool) -> None:
    world = World()
    left = {
        "gs://models/jobs/census/export/saved_model.pb": b"x",
        "gs://models/jobs/census/ckpt-1.index": b"x",
    }
    record = ended(world, "census", JobState.SUCCEEDED, {"m.pt": b"x"} if own_directory else {}, LEGACY, left)
    assert record.model is not None
    assert record.output_uri == f"gs://models/jobs/census/census/{record.run_id}"
    own = f"{record.output_uri}/model/"
    assert record.model.uri == (own if own_directory else "gs://models/jobs/census/")
    assert record.model.format == ("pytorch" if own_directory else "saved_model")
    assert [problem.partition(":")[0] for problem in record.problems] == ["$.trainingInput.jobDir"]


def test_the_best_trials_model_is_found_where_its_trial_saved_it(world: World) -> None:
    uri = "gs://models/tuned/${run_id}/${trial}"
    incoming = world.drop_and_launch(
        json.dumps(elsewhere(uri, tuning=TUNING)).encode(), "requests/tuned.json"
    )
    record = world.record(incoming.run_id)
    assert present(record.request).model_uri == f"gs://models/tuned/{record.run_id}/${{trial}}"
    trials = [
        Trial(id=str(number), state=TrialState.SUCCEEDED, final=Measured(metrics={"accuracy": value}))
        for number, value in ((1, 0.5), (2, 0.8))
    ]
    for trial in trials:
        put(world, f"gs://models/tuned/{record.run_id}/{trial.id}/m.keras", b"x")
    job = world.jobs.become(present(record.job).name, JobState.SUCCEEDED, trials=trials)
    world.complete(world.hint(job))
    record = world.record(incoming.run_id)
    RECORD.validate(world.document(f"runs/{incoming.run_id}.json"))
    assert record.model is not None
    best_uri = f"gs://models/tuned/{record.run_id}/2/"
    assert record.model.uri == present(present(record.tuning).best_trial).model_uri == best_uri
    assert record.model.metrics == {"accuracy": 0.8}


def test_a_run_on_record_is_looked_for_where_it_was_accepted_though_the_policy_changed() -> None:
    world = World(request_rules_with(**ANYWHERE))
    incoming = world.drop_and_launch(json.dumps(elsewhere("gs://codelab/m")).encode(), "requests/own.json")
    world.request_rules = request_rules_with(output_prefixes=())
    record = world.record(incoming.run_id)
    assert record.job is not None
    world.clock.advance(timedelta(seconds=60))
    world.jobs.become(record.job.name, JobState.RUNNING)
    put(world, "gs://codelab/m/model.onnx", b"x")
    world.complete(world.hint(world.jobs.become(record.job.name, JobState.SUCCEEDED)))
    model = present(world.record(incoming.run_id).model)
    assert model.format == "onnx"
