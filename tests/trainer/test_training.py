"""A training on a generated data set: what a user sees and serves."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.trainer.conftest import ROOT, Replica, start_replica
from tests.trainer.exports import SERVE, check_export, run_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trainer with the workloads and the program of its page: `flat` as a file beside the others."""
    path = tmp_path_factory.mktemp("documented")
    text = (ROOT / "docs" / "reference" / "trainer-library.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    images, table, program = (block for block in blocks if "runpy" not in block)  # without the launcher
    shutil.copytree(ROOT / "trainer", path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    (path / "trainer" / "workloads" / "flat.py").write_text(images)
    (path / "my_package").mkdir()
    (path / "my_package" / "houses.py").write_text(table)
    (path / "program.py").write_text(program)
    (path / "houses.csv").write_text("".join(f"{n / 40},{1 - n / 40},{n / 20}\n" for n in range(40)))
    return path


@pytest.fixture(scope="module")
def trained(tree: Path, data_dir: Path) -> Replica:
    """`python -m trainer.task` with the documented workload, as a separate process without a cluster."""
    replica = start_replica(
        "--workload=flat", "--dataset=cassava", "--epochs=1", f"--data_dir={data_dir}", "--batch_size=8",
        f"--job_dir={tree}/job", "--cache", "--mixed_precision", "--hidden_units=16.0", "--activation=tanh",
        "--strategy=one_device", "--profile=2,3", cwd=tree, files=tree / "trained",
        environment={"CLOUD_ML_JOB_ID": "7"},
    )  # fmt: skip
    assert replica.wait() == 0, replica.err.read_text()[-3000:]
    return replica


@pytest.mark.usefixtures("trained")
def test_the_documented_workload_trains_as_a_file_beside_the_others(tree: Path) -> None:
    manifest = json.loads((tree / "job" / "model" / "export.json").read_text())
    assert manifest["image_size"] == [28, 28]
    assert manifest["model_uri"] == f"file://{tree}/job/model/"
    assert manifest["training"]["weights"] == "random"
    assert manifest["job"] == {"job_id": "7"}, "by which a process that is started again knows its export"


def test_the_documented_workload_for_a_table_trains_from_the_working_directory(tree: Path) -> None:
    replica = start_replica(
        "--workload=my_package.houses", "--table=houses.csv", f"--job_dir={tree}/houses", cwd=tree, files=tree / "houses"
    )  # fmt: skip
    assert replica.wait() == 0, replica.err.read_text()[-3000:]
    first, *_, last = (line["metrics"]["val_mae"] for line in replica.events("epoch_finished"))
    assert last < first
    manifest = check_export(tree / "houses" / "model")
    assert manifest["dataset"] == {"name": "houses.csv", "train_examples": 40}


def test_the_documented_program_survives_a_kill_and_reports_a_trials_metric(tree: Path) -> None:
    path = tree / "output.metrics"
    trial = {"CLOUD_ML_TRIAL_ID": "1", "CLOUD_ML_HP_METRIC_FILE": str(path), "CLOUD_ML_HP_METRIC_TAG": "mae"}
    arguments = (f"--job_dir={tree}/trial", "--checkpoint_steps=1", "--reported_metrics=mae", "--lr=0.05")

    def begun(name: str, epochs: int) -> Replica:
        flags = (*arguments, f"--epochs={epochs}")
        return start_replica(*flags, cwd=tree, files=tree / name, module="program", environment=trial)

    first = begun("first", 5000)
    first.wait_until(lambda replica: replica.events("epoch_finished"))
    first.process.kill()
    first.process.wait()
    done = len(first.events("epoch_finished"))
    again = begun("again", done + 2)
    assert again.wait() == 0, again.err.read_text()[-3000:]
    (start,) = again.events("train_started")
    (study,) = again.events("trial_reports")
    assert (study["severity"], study["metrics"], study["trial_id"]) == ("INFO", ["mae"], "1")
    assert start["initial_epoch"] or start["initial_step"]
    manifest = check_export(tree / "trial" / "model")
    assert f"loss of the evaluation: {manifest['metrics']['val_loss']}\n" in again.err.read_text()
    reports = [json.loads(line) for line in path.read_text().splitlines()]
    evaluated = [line["metrics"]["val_mae"] for line in again.events("epoch_finished")]
    assert [float(line["mae"]) for line in reports[-len(evaluated) :]] == evaluated
    steps = [int(line["global_step"]) for line in reports]
    assert steps == sorted(set(steps)), "no step is reported twice"


def test_one_process_exports_what_a_server_can_load_and_ask(tree: Path, trained: Replica) -> None:
    model_dir = tree / "job" / "model"
    manifest = check_export(model_dir)
    assert manifest["class_names"] == ["cbb", "cbsd", "cgm", "cmd", "healthy"]
    assert manifest["training"]["strategy"] == "OneDeviceStrategy"
    assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= manifest["metrics"].keys()
    (exported,) = trained.events("model_exported")
    assert exported["severity"] == "NOTICE"
    assert exported["model_path"] == f"{tree}/job/model/"
    assert exported["metrics"] == manifest["metrics"]
    served = run_program(SERVE, str(model_dir))
    assert served["inputs"] == {"image_bytes": ["string", [None]]}
    rows = served["answer"]["probabilities"]
    assert [len(row) for row in rows] == [5, 5, 5]
    assert [sum(row) for row in rows] == pytest.approx([1, 1, 1], abs=1e-5)
    best = [manifest["class_names"][row.index(max(row))] for row in rows]
    assert served["answer"]["class_name"] == best
    assert list((tree / "job" / "logs").rglob("events.out.tfevents*"))
    assert len(list((tree / "job" / "logs").rglob("*.xplane.pb"))) == 1, "steps 2 and 3 are profiled"
    assert trained.events("trial_reports") == []
