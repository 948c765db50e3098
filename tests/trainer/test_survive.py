"""Users' programs that survive: their data, their models, and the refusals of what cannot be trained."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import ROOT, Replica, reap, start_replica, two_replicas
from tests.trainer.exports import check_export, run_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

ASK = """
import json, sys
import tensorflow as tf
signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
specs = signature.structured_input_signature[1]
inputs = {name: tf.constant(value, specs[name].dtype) for name, value in json.loads(sys.argv[2]).items()}
given = {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in specs.items()}
answer = {name: value.shape.as_list() for name, value in signature(**inputs).items()}
print(json.dumps({"inputs": given, "answer": answer}))
"""


LOAD = """
import json, os, sys
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import keras, numpy as np, tensorflow as tf
kind = keras if sys.argv[2] == "3" else tf.keras
model = kind.models.load_model(f"{sys.argv[1]}/model.keras")
serving = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
inputs = {name: tf.ones([2, *spec.shape[1:]], spec.dtype) for name, spec in serving.structured_input_signature[1].items()}
answers = [tf.nest.flatten(answer) for answer in (model(inputs.get("inputs", inputs)), serving(**inputs))]
assert "trainer" not in sys.modules
print(json.dumps([bool(np.allclose(one, other)) for one, other in zip(*answers)] + [model.optimizer is not None]))
"""


def started(program: str, folder: Path, *flags: str, name: str = "run", **environment: str) -> Replica:
    return start_replica(
        program, str(folder), "--batch_size=8", f"--job_dir={folder}/job", *flags,
        cwd=ROOT, files=folder / name, environment=environment, module="tests.trainer.programs",
    )  # fmt: skip


def ended(replica: Replica) -> Replica:
    assert replica.wait() == 0, replica.err.read_text()[-3000:]
    return replica


def served(folder: Path, inputs: dict[str, Any]) -> Any:
    return run_program(ASK, str(folder / "job" / "model"), json.dumps(inputs))


def test_a_program_that_imports_keras_3_as_tf_keras_before_trainer_is_told_to_import_trainer_first(
    tmp_path: Path,
) -> None:
    program = """
from tensorflow.keras import Sequential, layers
from trainer import survive
import tensorflow as tf
examples = survive.Examples(lambda: tf.data.Dataset.from_tensor_slices([[1.0]]))
survive.run(lambda: Sequential([layers.Input((1,)), layers.Dense(1)]), examples)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        # Without the choice that an import of trainer in this process has left.
        env={**os.environ, "TF_USE_LEGACY_KERAS": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("which chooses Keras 2. Import trainer first.")


def test_two_replicas_train_a_model_of_several_inputs_and_outputs_until_a_callback_stops_them(
    tmp_path: Path,
) -> None:
    """As a trial of a study, which the chief alone reports to."""
    replicas = [
        started(
            "tabular", tmp_path, "--epochs=5", "--reported_metrics=loss,price_loss", name=role, NAME=role,
            TF_CONFIG=json.dumps(config), CLOUD_ML_TRIAL_ID="1", CLOUD_ML_HP_METRIC_TAG="val_loss",
            CLOUD_ML_HP_METRIC_FILE=f"{tmp_path}/{role}.metrics",
        )
        for role, config in zip(("chief", "worker"), two_replicas(), strict=True)
    ]  # fmt: skip
    try:
        chief, worker = (ended(replica) for replica in replicas)
    finally:
        reap(replicas)
    (one,), (other,) = (each.events("train_finished") for each in (chief, worker))
    assert one["weights_sha256"] == other["weights_sha256"]
    epochs = [line["metrics"] for line in chief.events("epoch_finished")]
    assert len(epochs) == 2
    assert epochs[1]["loss"] < epochs[0]["loss"]
    manifest = check_export(tmp_path / "job" / "model")
    assert manifest["dataset"] == {"name": "data", "train_examples": 40}
    assert manifest["training"]["weights"] == "as built"
    returned = [path.read_text() for path in (tmp_path / "job").glob("*.returned")]
    assert returned == [str(manifest["metrics"]["val_loss"])] * 2
    reports = [json.loads(line) for line in (tmp_path / "chief.metrics").read_text().splitlines()]
    assert [(line["global_step"], line["loss"]) for line in reports if "loss" in line] == [
        (str(2 * (number + 1)), str(epoch["val_loss"])) for number, epoch in enumerate(epochs)
    ]
    assert sum("price_loss" in line for line in reports) == 2
    assert not (tmp_path / "worker.metrics").exists()
    (said,) = chief.events("trial_reports")
    assert said["severity"] == "WARNING"
    assert "its study optimizes 'val_loss'" in said["message"]
    found = served(tmp_path, {"rooms": [[1.0, 2.0, 3.0]] * 2, "town": [1, 2]})
    assert found == {
        "inputs": {"rooms": ["float32", [None, 3]], "town": ["int64", [None]]},
        "answer": {"price": [2, 1], "is_dear": [2, 1]},
    }


@pytest.mark.parametrize("keras", ["2", "3"])
def test_a_run_starts_from_the_weights_of_another_which_keras_loads(tmp_path: Path, keras: str) -> None:
    first = ended(started("trial", tmp_path, name="first", KERAS=keras))
    model = tmp_path / "job" / "model"
    assert run_program(LOAD, str(model), keras) == [True, True]

    def begun(name: str, **environment: str) -> Replica:
        flags = (f"--start_from={model}", f"--job_dir={tmp_path}/{name}", "--seed=2")
        return started("trial", tmp_path, *flags, name=name, KERAS=keras, **environment)

    again = ended(begun("again", RATE="0"))
    assert again.events("train_started")[0]["weights"] == str(model)
    one, other = (each.events("train_finished")[0]["weights_sha256"] for each in (first, again))
    assert one == other
    assert check_export(tmp_path / "again" / "model")["training"]["weights"] == str(model)
    refused = begun("refused", UNITS="3")
    assert refused.wait() == 2
    assert "is float32 [3, 3] in this run, and float32 [3, 2] there" in refused.err.read_text()


@pytest.mark.parametrize("keras", ["2", "3"])
def test_a_model_that_keras_cannot_save_and_a_metric_that_it_does_not_have_are_warned_of_once(
    tmp_path: Path, keras: str
) -> None:
    variables = {"CLOUD_ML_TRIAL_ID": "3", "CLOUD_ML_HP_METRIC_FILE": f"{tmp_path}/m", "UNSAVED": "1"}
    flags = ("--epochs=2", "--reported_metrics=accuracy,mae")
    replica = ended(started("trial", tmp_path, *flags, KERAS=keras, **variables))
    (unsaved,), (missing,) = map(replica.events, ("keras_model_missing", "metrics_missing"))
    assert {unsaved["severity"], missing["severity"]} == {"WARNING"}
    assert "model.keras" not in [entry["path"] for entry in check_export(tmp_path / "job" / "model")["files"]]
    assert missing["metrics"] == ["accuracy"]
    assert len((tmp_path / "m").read_text().splitlines()) == 2


def test_a_killed_training_on_tfrecords_stops_where_one_that_was_not_does_with_its_weights(
    tmp_path: Path,
) -> None:
    """Its learning rate still rises where it is killed."""
    flags = ("--epochs=5", "--checkpoint_steps=1", "--warmup_steps=12", "--deterministic")
    calm = ended(started("records", tmp_path, *flags, f"--job_dir={tmp_path}/calm", name="calm"))
    assert [each["epoch"] for each in calm.events("epoch_finished")] == [1, 2, 3]
    (counted,) = calm.events("examples_counted")
    assert counted["examples"] == 40
    killed = started("records", tmp_path, *flags, name="killed", CRASH="1")
    assert killed.wait() == 9
    again = ended(started("records", tmp_path, *flags, f"--start_from={tmp_path}/deleted", name="again"))
    (start,) = again.events("train_started")
    assert (start["initial_epoch"], start["initial_step"] > 0) == (1, True)
    assert [each["epoch"] for each in again.events("epoch_finished")] == [2, 3]
    one, other = (each.events("train_finished")[0]["weights_sha256"] for each in (calm, again))
    assert one == other


def test_lines_of_text_train_a_model_whose_words_are_served(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("1\tgood film\n0\tbad film\n" * 20)
    replica = ended(started("lines", tmp_path, "--epochs=4"))
    assert replica.events("epoch_finished")[-1]["metrics"]["val_accuracy"] == 1
    assert served(tmp_path, {"inputs": ["a good film", "bad"]}) == {
        "inputs": {"inputs": ["string", [None]]},
        "answer": {"outputs": [2, 1]},
    }


def test_what_cannot_be_trained_is_refused_in_a_sentence_with_the_repair(tmp_path: Path) -> None:
    replica = ended(started("refused", tmp_path))
    lines = replica.out.read_text().splitlines()
    found = [line for line in lines if not line.startswith("{")]
    of_trial = "so the study would not get any result of this trial"
    expected = [
        "An evaluator needs an evaluation split",
        "returned a Sequential that is not compiled",
        "returned a str that is not compiled",
        "a batch of them is (None, 3), and the input input_2 takes (None, 4). Correct the shapes of the examples",
        "The model does not fit the data: Shapes (8, 3) and (8, 2) are incompatible. A batch is",
        "load() returned list; expected a tf.data.Dataset",
        "load() is endless. Remove repeat()",
        "There are no training examples",
        "count=7, but load() has 40",
        f"The training examples cannot be read: {tmp_path}/none.txt; No such file or directory. Check",
        "The training examples cannot be read: StringToNumberOp could not correctly convert string: odd. Correct the",
        "An example cannot be read: StringToNumberOp could not correctly convert string: odd. Correct the data",
        "The examples: count=90, but load() has only 40. Correct or remove it.",
        "An example cannot be read: Cannot reshape a tensor with 3 elements to shape [4]",
        "The examples have no labels, and the model cannot be trained on them: Argument `target`",
        "The examples have no labels, and the model cannot be trained on them: None values not supported. A batch is",
        "The examples: count=90, but load() has only 40. Correct or remove it.",
        "Trial 5 has no metric to report: data has no evaluation split",
        f"--reported_metrics=accuracy: the model is compiled with loss, {of_trial}",
        f"--reported_metrics=accuracy: the model is compiled with loss, {of_trial}",
        f"--reported_metrics=loss_of_price: the model is compiled with loss, {of_trial}",
    ]
    assert sum('"epoch_finished"' in line for line in lines) == 1, "before the last one"
    assert len(found) == len(expected), found
    for line, words in zip(found, expected, strict=True):
        assert line.startswith("REFUSED ")
        assert words in line
