"""What a trial reports, and that it is what cloudml-hypertune would have written."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from trainer.faults import Unusable
from trainer.training.metric_file import (
    DEFAULT_METRIC_FILE,
    MetricFile,
    ReportedTrial,
    missing_metrics,
    parse_reports,
    trial_from,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "output.metrics"


def steps(path: Path) -> list[int]:
    return [int(json.loads(line)["global_step"]) for line in path.read_text().splitlines()]


def hypertunes(*, trial: str, tag: str, value: float, step: int, timestamp: float) -> str:
    """The line of hypertune/hypertune.py in cloudml-hypertune 0.1.0.dev6."""
    body = {
        "timestamp": timestamp,
        "trial": str(trial),
        tag: str(value),
        "global_step": str(step),
        "checkpoint_path": "",
    }
    return json.dumps(body, sort_keys=True) + "\n"


def test_a_line_is_the_one_that_hypertune_writes(path: Path) -> None:
    file = MetricFile(path, trial_id="7")
    assert path.read_text() == ""
    file.report({"accuracy": 0.5}, 10)
    file.report({"accuracy": 0.75, "loss": 1}, 20)
    lines = path.read_text().splitlines(keepends=True)
    times = [json.loads(line)["timestamp"] for line in lines]
    assert times == sorted(times)
    assert lines == [
        hypertunes(trial="7", tag="accuracy", value=0.5, step=10, timestamp=times[0]),
        hypertunes(trial="7", tag="accuracy", value=0.75, step=20, timestamp=times[1]),
        hypertunes(trial="7", tag="loss", value=1.0, step=20, timestamp=times[2]),
    ]


def test_no_more_than_the_last_hundred_reports_are_kept(path: Path) -> None:
    file = MetricFile(path, trial_id="1")
    for step in range(1, 131):
        file.report({"accuracy": 0.5}, step)
    assert steps(path) == list(range(31, 131))


def test_values_of_a_training_that_diverged_are_reported_as_hypertune_writes_them(path: Path) -> None:
    file = MetricFile(path, trial_id="1")
    file.report({"loss": math.nan, "accuracy": 0.5, "other": math.inf}, 5)
    reports = parse_reports(path.read_text(), "1")
    found = [{name: line[name] for name in ("loss", "accuracy", "other") if name in line} for line in reports]
    assert found == [{"loss": "nan"}, {"accuracy": "0.5"}, {"other": "inf"}]


def test_a_restarted_trial_keeps_the_reports_up_to_its_checkpoint(path: Path) -> None:
    first = MetricFile(path, trial_id="1")
    for step in (10, 20, 30):
        first.report({"accuracy": step / 100}, step)
    again = MetricFile(path, trial_id="1", after_step=20)
    assert steps(path) == [10, 20]
    for step in (20, 30, 40):
        again.report({"accuracy": step / 100}, step)
    assert steps(path) == [10, 20, 30, 40]


def test_reports_of_another_trial_and_a_truncated_line_are_removed(path: Path) -> None:
    MetricFile(path, trial_id="1").report({"accuracy": 0.5}, 10)
    kept = path.read_text()
    path.write_bytes((kept + kept.replace('"1"', '"2"') + kept[:40]).encode() + b"\xff")
    assert MetricFile(path, trial_id="1", after_step=10).last_step == 10
    assert path.read_text() == kept
    MetricFile(path, trial_id="2", after_step=10)
    assert path.read_text() == ""


def test_a_model_with_none_of_the_metrics_is_refused_with_those_that_it_has() -> None:
    assert missing_metrics(("loss", "mae"), ["loss", "mae", "mse"]) == []
    assert missing_metrics(("loss", "accuracy"), ["loss", "mae"]) == ["accuracy"]
    with pytest.raises(Unusable) as caught:
        missing_metrics(("accuracy", "auc"), ["loss", "mae"])
    assert str(caught.value) == (
        "--reported_metrics=accuracy,auc: the model is compiled with loss, mae, so the study would not get any result of "
        "this trial. Name one of these with --reported_metrics, or compile the model with accuracy."
    )


@pytest.mark.parametrize("wrong", ["folder", "file/output.metrics"])
def test_a_file_that_cannot_be_written_fails_before_training(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable, match=r"CLOUD_ML_HP_METRIC_FILE=.*cannot be written \(.*Set it to a file"):
        MetricFile(tmp_path / wrong, trial_id="1")


@pytest.mark.parametrize(
    ("environment", "trial"),
    [
        ({}, None),
        ({"CLOUD_ML_TRIAL_ID": "", "CLOUD_ML_HP_METRIC_FILE": "", "CLOUD_ML_HP_METRIC_TAG": "a"}, None),
        ({"CLOUD_ML_TRIAL_ID": "3"}, ("3", DEFAULT_METRIC_FILE, None)),
        ({"CLOUD_ML_HP_METRIC_FILE": "/m"}, ("0", "/m", None)),
        (
            {"CLOUD_ML_TRIAL_ID": "3", "CLOUD_ML_HP_METRIC_FILE": "/m", "CLOUD_ML_HP_METRIC_TAG": "accuracy"},
            ("3", "/m", "accuracy"),
        ),
    ],
)
def test_a_trial_is_recognized_by_its_environment(environment: dict[str, str], trial: Any) -> None:
    expected = trial and ReportedTrial(trial_id=trial[0], metric_file=Path(trial[1]), asked_metric=trial[2])
    assert trial_from(environment) == expected
