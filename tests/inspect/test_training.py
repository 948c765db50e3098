"""Smoke runs of real trainings: the trainer's own passes, and TensorFlow really fails where the inspection says so."""

import json
from pathlib import Path

import pytest

from tests.inspect.test_smoke import ROOT, inspected, said

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

TREES = Path(__file__).parent / "trees"
LONG = "--smoke_timeout_s=900"
TINY = ("--image_size=32", "--batch_size=4", "--steps_per_epoch=2", "--epochs=1")


WORKLOAD = "--workload=horses_or_humans"


def test_the_trainer_itself_passes_with_a_smoke_run(horses_dir: Path) -> None:
    findings = inspected(Path("trainer"), LONG, "--", WORKLOAD, f"--data_dir={horses_dir}", *TINY, status=0)
    assert said(findings, "error") == []
    assert said(findings, "unknown") == []
    assert "Only the chief left files in AIP_MODEL_DIR" in said(findings, "ok")
    assert any(text.startswith("The program ran to its end: both replicas") for text in said(findings, "ok"))


def test_a_trial_of_the_trainer_is_held_against_its_study(horses_dir: Path, tmp_path: Path) -> None:
    """One replica, for the request has one; its study asks for a metric that is reported and one that is not."""
    metrics = [{"id": "accuracy", "goal": "maximize"}, {"id": "top_5_accuracy", "goal": "maximize"}]
    parameters = {
        "num_units": {"type": "discrete", "values": [4, 8]},
        "momentum": {"type": "double", "min": 0.5, "max": 0.9},
    }
    request = {
        "model_name": "horses",
        "image": "gcr.io/p/i",
        "args": [WORKLOAD],
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        "tuning": {"metrics": metrics, "parameters": parameters, "max_trials": 2},
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    arguments = (WORKLOAD, f"--data_dir={horses_dir}", *TINY)
    findings = inspected(Path("trainer"), "--request", str(path), LONG, "--", *arguments, status=1)
    assert "chief-0 reported the study's metric 'accuracy'" in said(findings, "ok")
    (missed,) = [text for text in said(findings, "error") if text.startswith("chief-0")]
    assert missed.startswith("chief-0 reported 'accuracy'; the study asks for 'top_5_accuracy'.")


def test_keras_3_really_fails_to_fit_on_two_replicas() -> None:
    faulty = inspected(TREES / "keras_3" / "faulty.py", "--smoke", LONG, status=1)
    ends = [
        found
        for found in faulty
        if found["level"] == "error" and "ended with exit status 1" in found["found"]
    ]
    assert ends
    assert all(found["subject"] == "keras" and "PerReplica" in found["found"] for found in ends), ends
    source = (TREES / "keras_3" / "faulty.py").read_text().splitlines()
    assert source[ends[0]["line"] - 1].startswith("model.fit(")


def test_a_chief_that_saves_alone_really_waits_for_the_others() -> None:
    faulty = inspected(TREES / "chief_alone" / "faulty.py", "--smoke", LONG, status=1)
    (lost,) = [found for found in faulty if found["subject"] == "smoke" and found["level"] == "error"]
    assert "worker-0 had ended with exit status 0" in lost["found"]
    source = (ROOT / lost["path"]).read_text().splitlines()
    assert "model.save(" in source[lost["line"] - 1]
    mended = inspected(TREES / "chief_alone" / "mended.py", "--smoke", LONG, status=0)
    assert {found["level"] for found in mended} == {"ok"}


def test_replicas_that_all_save_to_one_directory_are_seen_to() -> None:
    faulty = inspected(TREES / "one_directory" / "faulty.py", "--smoke", LONG, status=1)
    assert any(text.startswith("worker-0 wrote into AIP_MODEL_DIR") for text in said(faulty, "error"))


def test_an_operation_before_the_strategy_really_ends_both_replicas() -> None:
    faulty = inspected(TREES / "operation_first" / "faulty.py", "--smoke", LONG, status=1)
    assert any(
        found["subject"] == "strategy" and "Collective ops must be configured" in found["found"]
        for found in faulty
    )
