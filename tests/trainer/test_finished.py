"""A replica that restarts after the export exits at once, whatever its role."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import ROOT, places
from trainer.checkpoints.files import CHIEFS_FOLDER
from trainer.export.manifest import manifest_of, write_manifest

GOES_ON = 99
RUN = f"""
import os
import sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow":
            os._exit({GOES_ON})

sys.meta_path.insert(0, Stop())
from trainer import survive
from trainer.task import main
with survive.end_on_error():
    main(sys.argv[1:], os.environ)
"""
"""A replica that ends with the status GOES_ON once it needs TensorFlow, which takes seconds to load."""
CLUSTER = {"chief": ["c:1"], "worker": ["w:1"], "ps": ["p:1"]}
METRICS = {"loss": 0.5, "val_loss": 0.25, "val_accuracy": 0.75}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """What a job leaves that ended after its export, with its last checkpoint."""
    found = tmp_path / "models" / "run-1"
    (found / "model").mkdir(parents=True)
    (found / "model" / "saved_model.pb").write_bytes(b"graph")
    folder = found / "checkpoints" / CHIEFS_FOLDER
    folder.mkdir(parents=True)
    (folder / "ckpt-2.json").write_text("{}")
    training = {"epochs": 2, "steps_per_epoch": 10}
    description = {"job": {"job_id": "7"}, "metrics": METRICS, "training": training}
    write_export(found / "model", description)
    return found


def write_export(model: Path, description: dict[str, Any]) -> None:
    made = manifest_of(model, model_uri="gs://b/", created_at=datetime.now(UTC), description=description)
    write_manifest(model, made)


def restarted(run_dir: Path, role: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A replica in which neither the data nor any other replica is there."""
    config = {"cluster": CLUSTER, "task": {"type": role, "index": 0}}
    environment = {
        **os.environ, **places("run-1", run_dir.parent.parent),
        "CLOUD_ML_JOB_ID": "7", "TF_CONFIG": json.dumps(config), **variables,
    }  # fmt: skip
    flags = ("--dataset=cassava", f"--data_dir={run_dir}/none", "--epochs=2")
    return subprocess.run(
        [sys.executable, "-c", RUN, *flags],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("role", ["chief", "worker", "ps"])
def test_a_restarted_replica_exits_without_tensorflow_data_or_peers(run_dir: Path, role: str) -> None:
    done = restarted(run_dir, role)
    assert done.returncode == 0, done.stderr
    (event,) = map(json.loads, done.stdout.splitlines())
    assert event["event"] == "already_exported"
    assert event["replica"] == f"{role}-0"
    assert event["model_path"] == "gs://models/run-1/model/"
    left = list((run_dir / "checkpoints").iterdir())
    assert left == ([] if role == "chief" else [run_dir / "checkpoints" / CHIEFS_FOLDER])


def test_an_evaluator_exits_once_no_checkpoint_is_left_to_evaluate(run_dir: Path) -> None:
    behind = restarted(run_dir, "evaluator")
    assert (behind.returncode, behind.stdout) == (GOES_ON, "")
    assert restarted(run_dir, "chief").returncode == 0
    done = restarted(run_dir, "evaluator")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["replica"] == "evaluator-0"


def test_a_trials_chief_reports_its_last_metrics_to_a_new_metric_file_once(run_dir: Path) -> None:
    description = json.loads((run_dir / "model" / "export.json").read_text())
    del description["files"], description["model_uri"], description["created_at"], description["schema"]
    write_export(run_dir / "model", description | {"job": {"job_id": "7", "trial_id": "3"}})
    path = run_dir / "metrics" / "output.metrics"
    for _ in range(2):
        trial = {"CLOUD_ML_TRIAL_ID": "3", "CLOUD_ML_HP_METRIC_FILE": str(path)}
        assert restarted(run_dir, "chief", **trial).returncode == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["global_step"] for line in lines} == {"20"}
    assert [line["accuracy"] for line in lines if "accuracy" in line] == ["0.75"]
