"""Smoke runs of real trainings: the trainer's own passes, and TensorFlow's collective operations really wait."""

import json
from pathlib import Path

import pytest

from tests.inspect.test_smoke import inspected, said

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

TREES = Path(__file__).parent / "trees"
LONG = "--smoke_timeout_s=900"
TINY = ("--image_size=32", "--batch_size=4", "--steps_per_epoch=2", "--epochs=1")


WORKLOAD = "--workload=horses_or_humans"


def test_two_replicas_of_the_trainer_pass_as_a_trial_of_a_study(horses_dir: Path, tmp_path: Path) -> None:
    machine = {"machine": "n1-standard-4"}
    request = {
        "model_name": "horses",
        "image": "gcr.io/p/i",
        "args": [WORKLOAD],
        "cluster": {"chief": machine, "workers": {"count": 1, **machine}},
        "scheduling": {"restart_on_worker_restart": True},
        "tuning": {
            "metrics": [{"id": "accuracy", "goal": "maximize"}],
            "parameters": {
                "num_units": {"type": "discrete", "values": [4, 8]},
                "momentum": {"type": "double", "min": 0.5, "max": 0.9},
            },
            "max_trials": 2,
        },
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    arguments = (WORKLOAD, f"--data_dir={horses_dir}", *TINY)
    findings = inspected(Path("trainer"), "--request", str(path), LONG, "--", *arguments, status=0)
    assert said(findings, "error") == []
    assert said(findings, "not followed") == []
    assert "Only the chief left files in AIP_MODEL_DIR" in said(findings, "ok")
    assert any(text.startswith("The program finished: both replicas") for text in said(findings, "ok"))
    assert "chief-0 reported the study's metric 'accuracy'" in said(findings, "ok")
    assert any(text.startswith("The program takes --num_units, --momentum") for text in said(findings, "ok"))
