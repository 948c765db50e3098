"""Runs as they are watched, made up for these tests."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.cli.study.studies import START as TRIAL_START
from tests.client.served import run_record
from trainmaster.client.find import Run
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress
from trainmaster.client.watch.sighting import Sighting
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.runs.record import RunRecord

START = TRIAL_START - timedelta(seconds=4)
RUN_ID = "cassava-20260301t120000-eb46bb303f"
OUTPUT = f"gs://models/cassava-resnet50/{RUN_ID}"


def seconds(number: float) -> datetime:
    return START + timedelta(seconds=number)


def run(example: str = "succeeded", **changes: Any) -> Run:
    """The example's run, with these keys of its record changed; None removes one."""
    whole = run_record(example, **changes)
    whole["source"] = {**whole["source"], "event_time": stamp(0)}
    document = {key: value for key, value in whole.items() if value is not None}
    return Run(document=document, record=decoded(RunRecord, document))


def history(*states: str) -> list[dict[str, str]]:
    return [{"state": state, "at": stamp(number)} for number, state in enumerate(states)]


def stamp(number: float) -> str:
    return seconds(number).isoformat().replace("+00:00", "Z")


def reserved() -> Sighting:
    """A run without a job."""
    waiting = {
        "reason": "custom_model_training_nvidia_t4_gpus of us-central1 has no room: 2 of 2 are in use",
        "attempts": 3,
        "not_before": "2026-03-01T12:05:00.000000Z",
        "rate_limited": False,
    }
    run_ = run(
        state="waiting", history=history("reserved", "waiting"), job=None, model=None, completion=None,
        admission={"slots": [], "waiting": waiting},
    )  # fmt: skip
    return Sighting(run=run_, at=seconds(30))


def installing() -> Sighting:
    """A job whose packages are being installed."""
    run_ = run(
        state="running", history=history("reserved", "submitted", "running"), model=None, completion=None
    )
    line = "Installing scikit-learn, numpy in a new environment, as RUN pip install says."
    return Sighting(run=run_, at=seconds(9), job_state="JOB_STATE_RUNNING", job_started_at=seconds(3), service_lines=("Waiting for job to be provisioned.", line),
                    warnings=("requirements.txt is installed here, but no RUN line does: a built image lacks it.",))  # fmt: skip


def scripted() -> Sighting:
    """A job whose program logs its own lines."""
    lines = {
        "workerpool0-0": "epoch 15/20: loss 0.0503, accuracy 0.996",
        "workerpool1-0": "waiting for " + "batches " * 30,
    }
    return replace(installing(), last_lines=lines, warnings=())


def training(steps: int = 9, workers: int = 1) -> Sighting:
    """A job that trains."""
    names = {"workerpool0-0": "chief-0"}
    names |= {f"workerpool1-{number}": f"worker-{number}" for number in range(workers)}
    metrics = {"loss": 1.43, "accuracy": 0.56, "examples_per_s": 32.4}
    replicas = {
        lane: ReplicaProgress(replica=name, steps_done=steps, steps=6, epoch=2, epochs=2, metrics=metrics)
        for lane, name in names.items()
    }
    known = TrainingProgress(replicas=replicas, weights="random", strategy="MultiWorkerMirroredStrategy")
    return replace(installing(), training=known, warnings=())


def ended() -> Sighting:
    """A run that has succeeded."""
    states = [*history("reserved", "submitted", "running"), {"state": "succeeded", "at": stamp(662)}]
    return replace(
        training(12), run=run(history=states), exported_at=seconds(600), exported_to=f"{OUTPUT}/model/",
        last_line_at=seconds(661), service_lines=("Job completed successfully.",), job_state="JOB_STATE_SUCCEEDED",
        job_ended_at=seconds(660),
    )  # fmt: skip
