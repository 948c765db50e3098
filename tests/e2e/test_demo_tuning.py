"""A tuning as `make demo-tuning` watches it, on a running stack."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from trainmaster.cli.demo.stage import look_until
from trainmaster.cli.demo.tuning.play import hops, news, picture
from trainmaster.cli.demo.tuning.report import disagreements
from trainmaster.cli.demo.view import View
from trainmaster.cli.demo.watch import Dropped, Watch
from trainmaster.client.context import context_of_stack

from .project import ROOT, Project, request

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


def dropped(project: Project) -> Dropped:
    blob = project.storage.bucket(project.inbox).blob(NAME)
    blob.upload_from_string(request(project.id, f"--epochs={EPOCHS}", tuning=tuning()))
    return Dropped(
        object_name=NAME,
        generation=blob.generation,
        at=blob.time_created,
        uri=f"gs://{project.inbox}/{NAME}",
    )


def test_a_tuning_is_seen_from_its_drop_to_its_record_and_can_be_drawn(
    project: Project, tmp_path: Path
) -> None:
    out = io.StringIO()
    watch = Watch(context_of_stack(project.env), dropped(project))
    view = View(Console(file=out, force_terminal=False, width=300), picture=picture, news=news)
    seen = look_until(view, watch.look, lambda seen: seen.ended, "the end of the run")
    assert seen.board is not None
    study = seen.board.study
    assert list(disagreements(seen.record, study)) == []
    assert [len(trial.measurements) for trial in study.trials] == [EPOCHS] * TRIALS
    assert study.best is min(study.trials, key=lambda trial: trial.measurements[-1].value)
    assert set(seen.board.progress) == {trial.id for trial in study.trials}
    times = [hop.at for hop in hops(seen)]
    assert all(times), hops(seen)
    said = out.getvalue()
    assert [said.count(f"trial {n} succeeded") for n in range(1, TRIALS + 1)] == [1] * TRIALS
    assert said.count("Vertex AI HyperparameterTuningJob submitted") == 1
    drawn = command(project, seen.record["run_id"], "--out", str(tmp_path))
    assert drawn.returncode == 0, drawn.stderr
    assert seen.record["tuning"]["best_trial"]["model_uri"] in (tmp_path / "study.html").read_text()
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_a_job_that_is_not_there_cannot_be_drawn(project: Project, tmp_path: Path) -> None:
    parent = f"projects/{project.id}/locations/{project.region}"
    missing = command(project, f"{parent}/hyperparameterTuningJobs/1", "--out", str(tmp_path / "out"))
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "hyperparameterTuningJobs/1" in missing.stderr
    misspelt = command(project, "12")
    assert (misspelt.returncode, misspelt.stdout) == (3, "")
    assert "trainmaster ls" in misspelt.stderr
    assert not (tmp_path / "out").exists()


def command(project: Project, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", "study", "--context", f"local:{project.state}", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(project.state)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
