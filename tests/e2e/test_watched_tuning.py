"""A tuning as `trainmaster watch` shows it, on a running stack."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.command import Done, trainmaster
from trainmaster.cli.watch.live import View
from trainmaster.cli.watch.run import doing, news, picture
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_of_stack
from trainmaster.client.find import find_run
from trainmaster.client.logs.follow import look_until_over
from trainmaster.client.watch.sighting import RunWatch
from trainmaster.client.watch.timeline import timeline

from .project import ROOT, Project, eventually, request

pytestmark = pytest.mark.slow

TRIALS, EPOCHS = 4, 5
NAME = "requests/watched-tuning.yaml"


def tuning() -> dict[str, object]:
    return {
        "metrics": [{"id": "loss", "goal": "minimize"}],
        "parameters": {"rate": {"type": "double", "min": 0.001, "max": 1.0, "scale": "log"}},
        "max_trials": TRIALS,
        "parallel_trials": 2,
    }


def test_a_tuning_is_seen_from_its_drop_to_its_record_and_can_be_drawn(
    project: Project, tmp_path: Path
) -> None:
    project.drop(NAME, request(project.id, f"--epochs={EPOCHS}", tuning=tuning()))
    started = eventually(lambda: (project.status(NAME) or {}).get("run_id"), "the upload has started a run")
    out = io.StringIO()
    view = View(Console(file=out, force_terminal=False, width=300), picture=picture, news=news, doing=doing)
    with Clients(context_of_stack(project.env, project.state)) as clients:
        for seen in look_until_over(clients.context, RunWatch(clients, find_run(clients, started))):
            view.show(seen)
    study = seen.study
    assert study is not None
    recorded, best = seen.run.document["tuning"], study.best
    assert best is not None
    assert (
        recorded["best_trial"].items()
        >= {
            "id": best.id,
            "value": best.result,
            "parameters": dict(best.parameters),
            "model_uri": f"{seen.run.record.output_uri}/{best.id}/model/",
        }.items()
    )
    assert seen.run.document["model"]["uri"] == recorded["best_trial"]["model_uri"]
    states = {trial["id"]: trial["state"] for trial in recorded["trials"]}
    assert states == {trial.id: trial.state.value for trial in study.trials}
    assert [len(trial.measurements) for trial in study.trials] == [EPOCHS] * TRIALS
    assert best is min(study.trials, key=lambda trial: trial.measurements[-1].value)
    assert set(seen.training) == {trial.id for trial in study.trials}
    titles = [stage.title for stage in timeline(seen) if stage.at]
    assert titles == ["Request uploaded", "Run reserved", "Job submitted", "First trial started",
                      "Last trial ended", "Job ended", "Last log line", "Record closed"]  # fmt: skip
    said = out.getvalue()
    assert [said.count(f"trial {n} succeeded") for n in range(1, TRIALS + 1)] == [1] * TRIALS
    assert said.count("Job submitted") == 1
    drawn = command(project, started, "--html", str(tmp_path / "study.html"))
    assert drawn.status == 0, drawn.err
    assert seen.run.document["tuning"]["best_trial"]["model_uri"] in (tmp_path / "study.html").read_text()


def test_a_job_that_is_not_there_cannot_be_drawn(project: Project, tmp_path: Path) -> None:
    parent = f"projects/{project.id}/locations/{project.region}"
    missing = command(project, f"{parent}/hyperparameterTuningJobs/1", "--html", str(tmp_path / "out.html"))
    assert (missing.status, missing.out) == (3, "")
    assert "hyperparameterTuningJobs/1" in missing.err
    misspelt = command(project, "12")
    assert (misspelt.status, misspelt.out) == (3, "")
    assert "trainmaster ls" in misspelt.err
    assert not (tmp_path / "out.html").exists()


def command(project: Project, *arguments: str) -> Done:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(project.state)}
    words = ("study", "--context", f"local:{project.state}", *arguments)
    return trainmaster(*words, cwd=ROOT, environment=environment)
