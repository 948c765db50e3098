"""Real trainings of the real model, small in pictures and steps."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import ROOT, Replica, Runner, reap, write_demo_dataset
from tests.trainer.exports import SERVE, check_export, said

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

READ = """
import hashlib, json, sys
import tensorflow_datasets as tfds
def read(name, data_dir):
    builder = tfds.builder(name, data_dir=data_dir)
    found = {}
    for split in builder.info.splits:
        data = tfds.as_numpy(builder.as_dataset(split=split))
        found[split] = [[hashlib.sha256(e["image"].tobytes()).hexdigest(), int(e["label"])] for e in data]
    return {"type": type(builder).__module__, "version": str(builder.info.version), "splits": found}
print(json.dumps([read(*each.split("=")) for each in sys.argv[1:]]))
"""


@pytest.fixture(scope="module")
def generated(
    data_dir: Path, horses_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What TFDS reads of the generated Cassava, of the same generated again, and of the generated horses."""
    again = tmp_path_factory.mktemp("again")
    write_demo_dataset(again)
    places = (f"cassava={data_dir}", f"cassava={again}", f"horses_or_humans={horses_dir}")
    found: list[dict[str, Any]] = said(READ, *places)
    return found


def test_the_generated_data_set_reads_as_cassava_and_is_the_same_every_time(
    generated: list[dict[str, Any]],
) -> None:
    found, again, _ = generated
    assert (found["type"], found["version"]) == ("tensorflow_datasets.image_classification.cassava", "0.1.0")
    assert {split: len(examples) for split, examples in found["splits"].items()} == {
        "train": 39, "validation": 9, "test": 12,
    }  # fmt: skip
    every = [tuple(example) for examples in found["splits"].values() for example in examples]
    assert len(set(every)) == len(every)
    assert {label for _, label in every} == {0, 1, 2, 3, 4}
    assert again == found


def test_the_generated_horses_and_humans_read_as_the_real_ones_do(generated: list[dict[str, Any]]) -> None:
    *_, found = generated
    assert (found["type"], found["version"]) == (
        "tensorflow_datasets.image_classification.horses_or_humans",
        "3.0.0",
    )
    assert {split: len(examples) for split, examples in found["splits"].items()} == {"train": 18, "test": 6}
    every = [tuple(example) for examples in found["splits"].values() for example in examples]
    assert len(set(every)) == len(every)
    assert sum(label for _, label in every) == len(every) / 2


def test_one_process_exports_what_a_server_can_load_and_ask(runner: Runner) -> None:
    replica = runner.start("--epochs=1", environment={})
    assert replica.wait() == 0, replica.err.read_text()[-3000:]
    model_dir = runner.run_dir / "model"
    manifest = check_export(model_dir)
    assert manifest["model_uri"] == "gs://models/run-1/model/"
    assert manifest["class_names"] == ["cbb", "cbsd", "cgm", "cmd", "healthy"]
    assert manifest["training"]["strategy"] == "default"
    assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= manifest["metrics"].keys()
    (exported,) = replica.events("model_exported")
    assert exported["severity"] == "NOTICE"
    assert exported["model_path"] == "gs://models/run-1/model/"
    assert exported["metrics"] == manifest["metrics"]
    served = said(SERVE, str(model_dir))
    assert served["inputs"] == {"image_bytes": ["string", [None]]}
    rows = served["answer"]["probabilities"]
    assert [len(row) for row in rows] == [5, 5, 5]
    assert [sum(row) for row in rows] == pytest.approx([1, 1, 1], abs=1e-5)
    best = [manifest["class_names"][row.index(max(row))] for row in rows]
    assert served["answer"]["class_name"] == best
    assert list((runner.run_dir / "logs").rglob("events.out.tfevents*"))
    assert replica.events("trial_reports") == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, horses_dir: Path) -> tuple[Runner, Replica, Replica]:
    """Two replicas that trained two epochs of the small workload together, and ended."""
    runner = Runner(root=tmp_path_factory.mktemp("cluster"), data_dir=horses_dir)
    chief, worker = runner.start_cluster("--workload=horses_or_humans", "--batch_size=3", "--epochs=2")
    try:
        for replica in (chief, worker):
            assert replica.wait() == 0, replica.err.read_text()[-3000:]
    finally:
        reap((chief, worker))
    return runner, chief, worker


def test_two_replicas_train_one_model(finished: tuple[Runner, Replica, Replica]) -> None:
    _, chief, worker = finished
    assert len({replica.events("train_finished")[0]["weights_sha256"] for replica in (chief, worker)}) == 1
    for replica, name in ((chief, "chief-0"), (worker, "worker-0")):
        (started,) = replica.events("train_started")
        assert started["replica"] == name
        assert started["strategy"] == "MultiWorkerMirroredStrategy"
        assert (started["replicas_in_sync"], started["global_batch_size"]) == (2, 6)
        assert (started["weights"], started["initial_epoch"]) == ("random", 0)
        steps = [(line["epoch"], line["step"]) for line in replica.events("train_progress")]
        assert steps == sorted(set(steps))
        assert {(1, 1), (1, 3), (2, 1), (2, 3)} <= set(steps)
        assert all(0 <= line["accuracy"] <= 1 for line in replica.events("train_progress"))
    ends = [replica.events("epoch_finished") for replica in (chief, worker)]
    assert [line["metrics"] for line in ends[0]] == [line["metrics"] for line in ends[1]]
    # What was reported at an epoch's last step is what Keras says of the epoch.
    last = chief.events("train_progress")[-1]
    assert last["loss"] == pytest.approx(ends[0][1]["metrics"]["loss"], rel=1e-4)
    assert last["accuracy"] == pytest.approx(ends[0][1]["metrics"]["accuracy"], rel=1e-4)


def test_only_the_chief_leaves_anything_behind(finished: tuple[Runner, Replica, Replica]) -> None:
    runner, chief, worker = finished
    assert check_export(runner.run_dir / "model")["training"]["replicas_in_sync"] == 2
    assert len(chief.events("model_exported")) == 1
    assert worker.events("model_exported") == []
    # TensorFlow's own scratch files would go when the interpreter shuts down, which no replica waits for.
    left = {path.name for path in worker.scratch.iterdir() if not path.name.startswith("__autograph")}
    assert left <= {"__pycache__"}
    assert list((runner.run_dir / "checkpoints").iterdir()) == []


def test_the_documented_workload_trains_as_a_file_beside_the_others(tmp_path: Path, data_dir: Path) -> None:
    text = (ROOT / "docs" / "trainer.md").read_text()
    ((program,),) = [re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "trainer" / "workloads" / "flat.py").write_text(program)
    command = [sys.executable, "-m", "trainer.task", "--workload=flat", "--dataset=cassava", "--epochs=1"]
    options = [
        f"--data_dir={data_dir}",
        "--batch_size=8",
        f"--job_dir={tmp_path}/job",
        "--cache",
        "--mixed_precision",
        "--hidden_units=16.0",
        "--activation=tanh",
    ]
    wrong = subprocess.run(
        [*command, "--activation=tan"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "--activation=tan: expected one of relu, tanh; found 'tan'." in wrong.stderr
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    manifest = json.loads((tmp_path / "job" / "model" / "export.json").read_text())
    assert manifest["image_size"] == [28, 28]
    assert manifest["model_uri"] == f"file://{tmp_path}/job/model/"
    assert manifest["training"]["weights"] == "random"
