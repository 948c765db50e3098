"""While a job runs, each reconcile pass updates the record and the drop's status with its progress."""

import json
from typing import Any

import pytest

from tests.contract.boundaries import At, raising
from tests.contract.schemas import RECORD, STATUS
from tests.contract.test_tuning import REQUEST as TUNING
from tests.contract.test_tuning import trial
from tests.contract.world import LEDGER, MODELS, OBJECT, REQUEST, Boundary, World
from trainmaster.orchestrator.core.completion.outcome import ERROR_DELAY
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.core.runs.job import Job, JobState, TrialState
from trainmaster.orchestrator.core.sizes import MAX_METRICS_BYTES


def running(request: bytes = REQUEST) -> tuple[World, Job]:
    """A run on record as running, and its job."""
    world = World()
    world.launch(world.drop(request))
    (job,) = world.jobs.all()
    job = world.jobs.become(job.name, JobState.RUNNING)
    world.complete(world.hint(job, tells_end=False))
    return world, job


def status(world: World) -> dict[str, Any]:
    found = world.document(f"status/{OBJECT}.json")
    STATUS.validate(found)
    RECORD.validate(encoded(world.record(found["run_id"])))
    return found


def report(world: World, job: Job, content: object, place: str = "model/metrics.json") -> None:
    name = f"{job.output_uri.removeprefix(f'gs://{MODELS}/')}/{place}"
    written = content if isinstance(content, bytes) else json.dumps(content).encode()
    world.objects.write(MODELS, name, written, if_generation=None)


def reconciled(world: World, boundary: Boundary | None = None) -> list[str]:
    """The calls of one reconcile pass of one running job, without those of the pass's own mark."""
    crossed = boundary or Boundary()
    world.reconcile(crossed)
    return [call for call in crossed.calls if not call.endswith(" ticks")]


def test_a_running_tuning_shows_its_best_trial_and_how_many_trials_are_in_each_state() -> None:
    world, job = running(TUNING)
    world.reconcile()
    assert not {"trials", "best_trial", "metrics"} & set(status(world))
    ended = [trial(1, 0.6), trial(2, 0.9), trial(3, None, TrialState.INFEASIBLE)]
    going_on = [trial(4, 0.95, TrialState.ACTIVE), trial(5, None, TrialState.REQUESTED)]
    world.jobs.become(job.name, JobState.RUNNING, trials=[*ended, *going_on])
    world.reconcile()
    shown = status(world)
    assert shown["state"] == "running"
    assert shown["trials"] == {"SUCCEEDED": 2, "INFEASIBLE": 1, "ACTIVE": 1, "REQUESTED": 1}
    assert shown["best_trial"] == {
        "id": "2",
        "metric": "accuracy",
        "goal": "maximize",
        "value": 0.9,
        "parameters": {"learning_rate": 0.02, "momentum": 0.5, "num_units": 64.0},
    }
    assert shown["metrics"] == {"accuracy": 0.9}


def test_a_running_job_shows_the_last_values_of_its_metrics_file() -> None:
    world, job = running()
    for accuracy in (0.5, 0.75):
        report(world, job, {"val_accuracy": accuracy, "note": "epoch", "loss": float("nan")})
        world.reconcile()
        assert status(world)["metrics"] == {"val_accuracy": accuracy}


@pytest.mark.parametrize("request_text", [REQUEST, TUNING])
def test_what_has_not_changed_is_not_written_again_and_costs_one_read_at_most(request_text: bytes) -> None:
    world, job = running(request_text)
    trials = [trial(1, 0.6), trial(2, None, TrialState.ACTIVE)] if request_text == TUNING else []
    world.jobs.become(job.name, JobState.RUNNING, trials=trials)
    report(world, job, {"val_accuracy": 0.5})
    world.reconcile()
    shown = status(world)
    calls = reconciled(world)
    assert not [call for call in calls if call.startswith(("write", "delete", "publish"))]
    assert calls.count("list jobs") == 1
    assert calls.count("read job") == (1 if request_text == TUNING else 0)  # lists have no trials
    assert calls.count(f"read {MODELS}") == (0 if request_text == TUNING else 1)
    assert calls.count(f"read {LEDGER}") == 1
    assert status(world) == shown


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b'{"loss": NaN}', b"\xff", b"[" * 10_000, b'{"loss": 1}' + b" " * MAX_METRICS_BYTES],
)
def test_a_broken_metrics_file_keeps_the_last_values_and_writes_nothing(content: bytes) -> None:
    world, job = running()
    report(world, job, {"val_accuracy": 0.5})
    world.reconcile()
    report(world, job, content)
    assert not [call for call in reconciled(world) if call.startswith("write")]
    assert status(world)["metrics"] == {"val_accuracy": 0.5}


@pytest.mark.parametrize(
    "error",
    [
        ServiceFailed("Cloud Storage", "read", "503"),
        AccessDenied("Cloud Storage", "read", "storage.objects.get"),
    ],
)
def test_metrics_that_cannot_be_read_keep_no_run_from_being_reconciled(error: Exception) -> None:
    world, job = running()
    report(world, job, {"val_accuracy": 0.5})
    (result, *_) = world.reconcile(At(f"read {MODELS}", before=raising(error)))
    assert result.message == "the job is still active: JOB_STATE_RUNNING"
    assert "metrics" not in status(world)


def test_a_failed_run_without_a_model_keeps_its_last_metrics() -> None:
    world, job = running()
    report(world, job, {"val_accuracy": 0.5})
    world.reconcile()
    world.jobs.become(job.name, JobState.FAILED)
    world.reconcile_after(ERROR_DELAY)
    shown = status(world)
    assert (shown["state"], shown["metrics"]) == ("failed", {"val_accuracy": 0.5})


def test_a_log_entry_of_a_running_job_reads_no_metrics() -> None:
    world, job = running()
    report(world, job, {"val_accuracy": 0.5})
    boundary = Boundary()
    world.complete(world.hint(job, tells_end=False), boundary)
    assert f"read {MODELS}" not in boundary.calls


@pytest.mark.parametrize(
    ("model_uri", "place"),
    [
        ("gs://models/mine/${run_id}", "gs://models/mine/{run}/metrics.json"),
        ("gs://models/mine/${run_id}/model.keras", "gs://models/mine/{run}/metrics.json"),
        ("gs://models/shared", "{output}/model/metrics.json"),
    ],
)
def test_metrics_are_read_beside_the_model_only_where_no_other_run_writes(model_uri: str, place: str) -> None:
    world, job = running(REQUEST + f"\nmodel_uri: {model_uri}\n".encode())
    uri = place.format(run=status(world)["run_id"], output=job.output_uri)
    world.objects.write(MODELS, uri.removeprefix(f"gs://{MODELS}/"), b'{"loss": 0.5}', if_generation=None)
    world.objects.write(MODELS, "shared/metrics.json", b'{"loss": 9}', if_generation=None)
    world.reconcile()
    assert status(world)["metrics"] == {"loss": 0.5}
