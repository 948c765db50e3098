"""The tuning demo checks its claims against the job itself."""

import io
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from trainmaster.cli.demo.stage import Scene
from trainmaster.cli.demo.tuning.report import disagreements, report
from trainmaster.client.context import Context
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress
from trainmaster.client.study.study import Study
from trainmaster.client.watch.sighting import Sighting, epochs
from trainmaster.client.watch.timeline import LAST_TRIAL_ENDED, timeline
from trainmaster.orchestrator.core.runs.job import TrialState

from .studies import JOB, START, study, trial
from .watch import sightings

OUTPUT = "gs://models/horses/run-1"
STUDY = study(trial(1, final=0.7), trial(2, final=0.9))


def record(**changes: object) -> Mapping[str, Any]:
    uri = f"{OUTPUT}/2/model/"
    best = {"id": "2", "metric": "accuracy", "goal": "maximize", "value": 0.9, "model_uri": uri}
    return {
        "run_id": "run-1",
        "state": "succeeded",
        "request": {"output_uri": OUTPUT},
        "job": {"name": JOB, "state": "JOB_STATE_SUCCEEDED"},
        "history": [
            {"state": state, "at": "2026-01-01T00:00:01Z"} for state in ("reserved", "submitted", "succeeded")
        ],
        "model": {"uri": uri},
        "tuning": {
            "trials": [{"id": "1", "state": "SUCCEEDED"}, {"id": "2", "state": "SUCCEEDED"}],
            "best_trial": {**best, "parameters": dict(STUDY.trials[1].parameters)},
        },
        "problems": [],
        **changes,
    }


def sighting(drawn: Study, **changes: Any) -> Sighting:
    whole = sightings.run("tuned")
    return Sighting(
        run=replace(whole, document={**whole.document, **record(**changes)}),
        at=START + timedelta(seconds=75),
        study=drawn,
    )


def tuning(**changes: object) -> dict[str, object]:
    return {"tuning": {**record()["tuning"], **changes}}


def best(**changes: object) -> dict[str, object]:
    return tuning(best_trial={**record()["tuning"]["best_trial"], **changes})


def test_a_record_that_says_what_the_job_says_is_agreed_with() -> None:
    assert list(disagreements(record(), STUDY)) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (best(id="1"), "best trial: 1. By the job: 2."),
        (best(value=0.95), "best value: 0.95. By the job: 0.9."),
        (best(parameters={"learning_rate": 1.0}), "The record's best parameters:"),
        (best(model_uri=f"{OUTPUT}/1/model/"), "The record's model of the best trial:"),
        ({"model": {"uri": f"{OUTPUT}/1/model/"}}, "The record's model:"),
        (tuning(trials=[{"id": "1", "state": "SUCCEEDED"}]), "The record's states of trials:"),
        ({**tuning(best_trial=None), "problems": ["no metric"]}, "There is no best trial: no metric"),
    ],
)
def test_every_claim_that_does_not_hold_is_named(changes: dict[str, object], said: str) -> None:
    (problem, *_) = disagreements(record(**changes), STUDY)
    assert said in problem


def test_the_timeline_of_a_tuning_has_the_first_and_last_trial() -> None:
    running = study(trial(1, final=0.7), trial(2, state=TrialState.ACTIVE, curve=()))
    stages = {
        stage.title: stage for stage in timeline(replace(sighting(STUDY), study=running, parallel_trials=2))
    }
    assert stages["First trial started"].at == START
    assert stages["First trial started"].detail == "2 trials, 2 at a time"
    assert LAST_TRIAL_ENDED not in stages  # the run has ended, so it never will
    (last,) = [stage for stage in timeline(sighting(STUDY)) if stage.title == LAST_TRIAL_ENDED]
    assert last.at == START + timedelta(seconds=30)


def test_a_trials_epoch_is_its_furthest_replicas() -> None:
    chief = ReplicaProgress(replica="chief-0", steps_done=9, epoch=3, epochs=10)
    worker = ReplicaProgress(replica="worker-0", steps_done=7, epoch=2, epochs=10)
    training = {
        "1": TrainingProgress(replicas={"chief-0": chief, "worker-0": worker}),
        "2": TrainingProgress(replicas={"chief-0": ReplicaProgress(replica="chief-0", epochs=10)}),
        "3": TrainingProgress(),
    }
    assert epochs(training) == {"1": "epoch 3/10", "2": "epoch 1/10"}


def scene(state: Path) -> Scene:
    target = Context(
        project="p", region="us-central1", inbox_bucket="inbox", ledger_bucket="ledger", models_bucket="models",
        champions_bucket="champions", data_bucket="data",
    )  # fmt: skip
    return Scene(target=target, state=state, data_dir="gs://data/tfds")


def test_a_tuning_without_a_best_trial_is_reported_and_still_drawn(tmp_path: Path) -> None:
    bad = study(trial(1, state=TrialState.INFEASIBLE, curve=(), reason="no metric"))
    failed = sighting(bad, state="failed", failure=None, tuning=None, problems=["no trial reported it"])
    out = io.StringIO()
    assert report(Console(file=out, width=120), failed, scene(tmp_path)) == 1
    assert "The run ended failed" in out.getvalue()
    assert "There is no best trial: no trial reported it" in out.getvalue()
    assert "no metric" in (tmp_path / "study.html").read_text()


def test_a_model_that_is_not_in_the_bucket_ends_the_demo_with_its_reason(tmp_path: Path) -> None:
    out = io.StringIO()
    assert report(Console(file=out, width=120), sighting(STUDY), scene(tmp_path)) == 1
    assert "No readable export.json" in out.getvalue()
    assert "2: accuracy 0.9 with" in out.getvalue()
    assert (tmp_path / "study.html").exists()
