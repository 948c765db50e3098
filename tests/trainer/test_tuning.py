"""Real trials of the workload to tune: what they report, and what they leave."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import Replica, Runner, places, reap
from tests.trainer.exports import SERVE, check_export, run_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

# As the service appends them: behind the job's own arguments, numbers with a point.
PARAMETERS = ("--learning_rate=0.01", "--momentum=0.9", "--num_units=8.0")
WORKLOAD = ("--workload=horses_or_humans", "--num_units=4", *PARAMETERS)
STEPS = 3  # of an epoch, by the runner's arguments


class Trials:
    """Trials of one study, each with its directories and metric file, started on one runner's bucket."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def metric_file(self, trial: str) -> Path:
        return self.runner.root / f"trial-{trial}" / "output.metrics"

    def base(self, trial: str) -> Path:
        return self.runner.root / "buckets" / "models" / "run-1" / trial

    def environment(self, trial: str, *, tag: str = "accuracy") -> dict[str, str]:
        return {
            "CLOUD_ML_TRIAL_ID": trial,
            "CLOUD_ML_HP_METRIC_FILE": str(self.metric_file(trial)),
            "CLOUD_ML_HP_METRIC_TAG": tag,
            **places(f"run-1/{trial}", self.runner.root / "buckets"),
        }

    def start(self, trial: str, *arguments: str, tag: str = "accuracy") -> Replica:
        return self.runner.start(*WORKLOAD, *arguments, environment=self.environment(trial, tag=tag))

    def reports(self, trial: str) -> list[dict[str, Any]]:
        path = self.metric_file(trial)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory, horses_dir: Path) -> Iterator[Trials]:
    runner = Runner(root=tmp_path_factory.mktemp("study"), data_dir=horses_dir)
    yield Trials(runner)
    reap(runner.started)


def ended(replica: Replica) -> Replica:
    assert replica.wait() == 0, replica.err.read_text()[-3000:]
    return replica


def test_of_a_trial_with_two_replicas_the_chief_alone_reports_and_exports_a_model_of_its_own(
    trials: Trials,
) -> None:
    replicas = trials.runner.start_cluster(
        *WORKLOAD, "--epochs=2", "--batch_size=2", "--reported_metrics=loss,accuracy",
        environment=trials.environment("1", tag="val_accuracy"),
    )  # fmt: skip
    chief, worker = (ended(replica) for replica in replicas)
    (started,) = chief.events("train_started")
    assert (started["strategy"], started["dataset"]) == (
        "MultiWorkerMirroredStrategy",
        "horses_or_humans:3.0.0",
    )
    evaluations = [line["metrics"] for line in chief.events("epoch_finished")]
    lines = trials.reports("1")
    found = [
        (line["global_step"], line["trial"], {key: line[key] for key in ("accuracy", "loss") if key in line})
        for line in lines
    ]
    assert found == [
        (str(STEPS * (epoch + 1)), "1", {name: str(evaluations[epoch][f"val_{name}"])})
        for epoch in range(2)
        for name in ("loss", "accuracy")
    ]
    assert worker.events("trial_reports") == []
    (reported,) = chief.events("trial_reports")
    assert (reported["severity"], reported["metrics"], reported["trial_id"]) == (
        "WARNING",
        ["loss", "accuracy"],
        "1",
    )
    assert "its study optimizes 'val_accuracy'" in reported["message"]

    manifest = check_export(trials.base("1") / "model")
    assert manifest["model_uri"] == "gs://models/run-1/1/model/"
    assert manifest["class_names"] == ["horses", "humans"]
    assert manifest["metrics"]["val_accuracy"] == evaluations[-1]["val_accuracy"]
    assert manifest["dataset"]["evaluation_split"] == "test"
    served = run_program(SERVE, str(trials.base("1") / "model"))
    rows = served["answer"]["probabilities"]
    assert [len(row) for row in rows] == [2, 2, 2]
    assert [sum(row) for row in rows] == pytest.approx([1, 1, 1], abs=1e-6)
    assert served["answer"]["class_name"] == [manifest["class_names"][row.index(max(row))] for row in rows]


def test_a_trial_without_evaluation_and_unfit_data_are_refused_with_the_reason(
    trials: Trials, data_dir: Path
) -> None:
    blind = trials.start("5", "--evaluation_split=none")
    other = trials.start("6", f"--data_dir={data_dir}", "--dataset=cassava", "--image_size=16")
    assert (blind.wait(), other.wait()) == (2, 2)
    assert (
        "Trial 5 has no metric to report: horses_or_humans:3.0.0 has no evaluation split"
        in blind.err.read_text()
    )
    assert "--dataset: the data set has 5 classes" in other.err.read_text()
    assert "--image_size=16x16: --workload=horses_or_humans needs at least 22" in other.err.read_text()
    assert trials.reports("5") == trials.reports("6") == []
