"""Every fault that the source shows is found at its line, and the same program mended is not complained of."""

import re
from pathlib import Path

import pytest

from trainer.doctor.asked.read import request_in
from trainer.doctor.checks import findings_of
from trainer.doctor.checks.examined import Examined
from trainer.doctor.finding import Finding, Level, Subject
from trainer.doctor.source.tree import program_in, tree_at
from trainer.doctor.surroundings import Surroundings, surroundings_of

ROOT = Path(__file__).resolve().parents[2]
TREES = Path(__file__).parent / "trees"

FAULTS = {
    "keras_3": (Subject.KERAS, Level.ERROR, "TF_USE_LEGACY_KERAS is set nowhere"),
    "keras_too_late": (Subject.KERAS, Level.ERROR, "is set after tensorflow was imported at"),
    "operation_first": (Subject.STRATEGY, Level.ERROR, "runs before MultiWorkerMirroredStrategy is built at"),
    "chief_alone": (Subject.SAVING, Level.ERROR, "Only the chief reaches `model.save`"),
    "one_directory": (
        Subject.SAVING,
        Level.ERROR,
        "Every replica reaches `model.save` with one and the same path",
    ),
    "model_dir": (Subject.MODEL_DIR, Level.ERROR, "never reads AIP_MODEL_DIR; `model.save` writes elsewhere"),
    "metric_tag": (Subject.METRIC, Level.ERROR, "asks for 'accuracy'; reported is 'val_accuracy'"),
    "parameters": (Subject.PARAMETERS, Level.ERROR, "a discrete parameter comes as '64.0'"),
    "roles": (Subject.ROLES, Level.ERROR, "they too build MultiWorkerMirroredStrategy"),
    "master": (Subject.ROLES, Level.ERROR, "knows the chief as 'master' only"),
    "checkpoints": (Subject.CHECKPOINTS, Level.WARNING, "keeps no checkpoint"),
}


def examined(program: Path, *, surroundings: Surroundings | None = None) -> list[Finding]:
    """The findings of one file, with the request that lies beside it, if any."""
    request = program.parent / "request.yaml"
    tree = tree_at(program)
    return findings_of(
        Examined(
            program=program_in(tree, None),
            surroundings=surroundings or surroundings_of(tree.root),
            request=request_in(request) if request.exists() else None,
        )
    )


def complaints(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is not Level.OK]


def test_every_sample_tree_has_its_row() -> None:
    assert {path.name for path in TREES.iterdir() if (path / "faulty.py").exists()} == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_found_at_its_line_with_cost_and_repair(name: str) -> None:
    program = TREES / name / "faulty.py"
    (line,) = [number for number, text in enumerate(program.read_text().splitlines(), 1) if "# here" in text]
    subject, level, words = FAULTS[name]
    found = [finding for finding in complaints(examined(program)) if words in finding.found]
    (finding,) = found
    assert (finding.subject, finding.level) == (subject, level)
    assert finding.place is not None
    assert (finding.place.line, Path(finding.place.path).name) == (line, "faulty.py")
    assert finding.cost
    assert finding.repair


@pytest.mark.parametrize("name", FAULTS)
def test_the_mended_program_is_not_complained_of(name: str) -> None:
    assert complaints(examined(TREES / name / "mended.py")) == []


def test_the_trainer_itself_has_nothing_to_complain_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    tree = tree_at(Path("trainer"))
    request = request_in(Path("examples/tuning.yaml"))
    findings = findings_of(
        Examined(
            program=program_in(tree, "trainer.task"), surroundings=surroundings_of(tree.root), request=request
        )
    )
    assert [finding for finding in findings if finding.level is Level.ERROR] == []
    assert {finding.subject for finding in findings} >= {Subject.KERAS, Subject.MODEL_DIR, Subject.METRIC}


HEADER = """
import os, json, tempfile, argparse
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
task_type, task_id = strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd")
model.fit(data, callbacks=[tf.keras.callbacks.BackupAndRestore(os.environ["AIP_CHECKPOINT_DIR"])])
"""

WHO_SAVES = {
    "the tutorial's way": (
        """
def _is_chief(task_type, task_id):
    return task_type == "chief" or (task_type == "worker" and task_id == 0)
def _get_temp_dir(dirpath, task_id):
    return os.path.join(dirpath, "workertemp_" + str(task_id))
def write_filepath(filepath, task_type, task_id):
    dirpath, base = os.path.dirname(filepath), os.path.basename(filepath)
    if not _is_chief(task_type, task_id):
        dirpath = _get_temp_dir(dirpath, task_id)
    return os.path.join(dirpath, base)
path = write_filepath(os.environ["AIP_MODEL_DIR"], task_type, task_id)
model.save(path)
""",
        None,
    ),
    "a path chosen in two branches": (
        """
if task_type == "chief":
    path = os.environ["AIP_MODEL_DIR"]
else:
    path = "/tmp/model"
model.save(path)
""",
        None,
    ),
    "a save in either branch": (
        """
if task_id == 0:
    model.save(os.environ["AIP_MODEL_DIR"])
else:
    model.save(tempfile.mkdtemp())
""",
        None,
    ),
    "the worker leaves before the save": (
        """
def main():
    if not is_chief():
        return
    model.save(os.environ["AIP_MODEL_DIR"])
main()
""",
        (Level.ERROR, "Only the chief"),
    ),
    "the guard stands in the caller": (
        """
def save(directory):
    tf.saved_model.save(model, directory)
if task_type in ("chief", None):
    save(os.environ["AIP_MODEL_DIR"])
""",
        (Level.ERROR, "Only the chief"),
    ),
    "a flag that all replicas share": (
        """
parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", default=os.environ["AIP_MODEL_DIR"])
args = parser.parse_args()
model.save(os.path.join(args.model_dir, "1"))
""",
        (Level.ERROR, "one and the same path"),
    ),
    "a path that nobody here explains": (
        """
import elsewhere
print(os.environ["AIP_MODEL_DIR"])
model.save(elsewhere.directory())
""",
        (Level.UNKNOWN, "Could not tell whether the replicas save"),
    ),
    "a parameter server's coordinator may save alone": (
        """
other = tf.distribute.ParameterServerStrategy(resolver)
if task_type == "chief":
    model.save(os.environ["AIP_MODEL_DIR"])
""",
        (Level.UNKNOWN, "Could not tell whether `model.save`"),
    ),
    "an image is no model": (
        """
from PIL import Image
print(os.environ["AIP_MODEL_DIR"])
if task_type == "chief":
    Image.open("a").save("b")
    figure.save("c")
""",
        None,
    ),
}


@pytest.mark.parametrize("name", WHO_SAVES)
def test_who_saves_is_told_as_far_as_the_source_fixes_it(name: str, tmp_path: Path) -> None:
    source, expected = WHO_SAVES[name]
    (tmp_path / "train.py").write_text(HEADER + source)
    found = [
        (finding.level, finding.found)
        for finding in complaints(examined(tmp_path / "train.py"))
        if finding.subject is Subject.SAVING
    ]
    if expected is None:
        assert found == []
        return
    ((level, words),) = found
    assert level is expected[0]
    assert expected[1] in words


def test_a_fault_of_clusters_is_a_warning_where_the_request_has_one_replica(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((TREES / "keras_3" / "faulty.py").read_text())
    (tmp_path / "request.yaml").write_text(
        "model_name: a\nimage: b\ncluster: {chief: {machine: n1-standard-4}}\n"
    )
    (finding,) = complaints(examined(tmp_path / "train.py"))
    assert (finding.subject, finding.level) == (Subject.KERAS, Level.WARNING)


@pytest.mark.parametrize(
    ("surroundings", "told"),
    [
        (Surroundings(variables={"TF_USE_LEGACY_KERAS": "1"}), "is set by the image or the request"),
        (Surroundings(tensorflow=(2, 15)), "TensorFlow 2.15 has Keras 2"),
    ],
)
def test_what_the_image_brings_settles_which_keras(surroundings: Surroundings, told: str) -> None:
    findings = examined(TREES / "keras_3" / "faulty.py", surroundings=surroundings)
    assert complaints(findings) == []
    assert any(told in finding.found for finding in findings if finding.subject is Subject.KERAS)


def test_a_variable_does_not_turn_standalone_keras_into_keras_2(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        HEADER.replace("tf.keras", "keras").replace(
            "import tensorflow as tf", "import tensorflow as tf, keras"
        )
        + 'model.save(os.environ["AIP_MODEL_DIR"] if task_type == "chief" else tempfile.mkdtemp())\n'
    )
    (finding,) = complaints(examined(tmp_path / "train.py"))
    assert "`import keras` is Keras 3" in finding.found


REPORTS = {
    'hypertune.HyperTune().report_hyperparameter_tuning_metric(hyperparameter_metric_tag="accuracy", metric_value=1)': (
        Level.OK,
        "'accuracy' is reported",
    ),
    "hypertune.HyperTune().report_hyperparameter_tuning_metric(metric_value=1)": (
        Level.ERROR,
        "'training/hptuning/metric'",
    ),
    'hypertune.HyperTune().report_hyperparameter_tuning_metric(os.environ["CLOUD_ML_HP_METRIC_TAG"], 1)': (
        Level.OK,
        "'accuracy' is reported",
    ),
    "hypertune.HyperTune().report_hyperparameter_tuning_metric(f'{kind}_accuracy', 1)": (
        Level.UNKNOWN,
        "Could not tell whether 'accuracy'",
    ),
    'open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w").write(text)': (Level.UNKNOWN, "Could not tell whether"),
    "pass": (Level.ERROR, "the program reports no metric"),
}


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_held_against_the_study(report: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, os, hypertune\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--learning_rate")\n'
        f"parser.parse_args()\nopen(os.environ['AIP_MODEL_DIR'])\n{report}\n"
    )
    (tmp_path / "request.yaml").write_text((TREES / "metric_tag" / "request.yaml").read_text())
    (finding,) = [each for each in examined(tmp_path / "train.py") if each.subject is Subject.METRIC]
    level, words = REPORTS[report]
    assert finding.level is level
    assert words in finding.found


PARSERS = {
    'parser.add_argument("--learning_rate")\nparser.parse_args()': None,
    'parser.add_argument("--learning_rates_of_all")\nparser.parse_args()': None,  # argparse takes a flag's beginning
    'parser.add_argument("--rate")\nparser.parse_args()': Level.ERROR,
    'parser.add_argument("--rate")\nparser.parse_known_args()': Level.WARNING,
    "for name in NAMES:\n    parser.add_argument(name)\nparser.parse_args()": Level.UNKNOWN,
    'for name in {"learning_rate": 1}:\n    parser.add_argument("--" + name)\nparser.parse_args()': None,
    'flags.DEFINE_float("learning_rate", 0.1, "")': None,
    "pass": Level.UNKNOWN,
}


@pytest.mark.parametrize("source", PARSERS)
def test_a_studys_parameter_must_be_a_flag(source: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import argparse\nparser = argparse.ArgumentParser()\n{source}\n")
    (tmp_path / "request.yaml").write_text((TREES / "metric_tag" / "request.yaml").read_text())
    found = [each.level for each in examined(tmp_path / "train.py") if each.subject is Subject.PARAMETERS]
    assert found == [PARSERS[source] or Level.OK]


def test_imports_inside_a_package_are_followed_and_others_are_not(tmp_path: Path) -> None:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "task.py").write_text(
        "from . import places\nfrom trainer.steps import train\ntrain(places.MODEL)\n"
    )
    (package / "places.py").write_text('import os\nMODEL = os.environ["AIP_MODEL_DIR"]\n')
    (package / "steps.py").write_text("def train(path): ...\n")
    (package / "old.py").write_text("this is no Python\n")
    findings = examined(package)
    assert complaints(findings) == []
    (read,) = [finding for finding in findings if finding.subject is Subject.MODEL_DIR]
    assert str(read.place).endswith("places.py:2")

    (package / "steps.py").write_text("import trainer.old\ndef train(path): ...\n")
    (broken,) = complaints(examined(package))
    assert (broken.level, broken.subject) == (Level.ERROR, Subject.SOURCE)
    assert re.search(r"old\.py:1$", str(broken.place))


MODEL_DIRS = {
    "print('nothing')": ("", Level.ERROR, "never reads AIP_MODEL_DIR"),
    '"""AIP_MODEL_DIR is described here and read nowhere."""': ("", Level.ERROR, "never reads"),
    "parser.add_argument('--job-dir')": ("", Level.WARNING, "reads --job-dir and not"),
    "parser.add_argument('--job-dir', help='where')": (
        "args: [--job-dir=gs://b/o]",
        Level.OK,
        "is given by the request",
    ),
    "parser.add_argument('--job-dir', help='')": ("args: [--epochs=1]", Level.ERROR, "gives no --job-dir"),
    "parser.add_argument('--model_dir')": ("args: ['--model_dir=$(AIP_MODEL_DIR)']", Level.OK, "is handed"),
    "subprocess.Popen(['train'])": ("", Level.UNKNOWN, "Could not tell"),
    "from google.cloud.aiplatform.training_utils import environment_variables as e": (
        "",
        Level.OK,
        "is handed",
    ),
}


@pytest.mark.parametrize("source", MODEL_DIRS)
def test_the_model_must_go_where_it_is_looked_for(source: str, tmp_path: Path) -> None:
    request, level, words = MODEL_DIRS[source]
    (tmp_path / "train.py").write_text(
        f"import subprocess\n{source}\n" if "Popen" in source else f"{source}\n"
    )
    if request:
        (tmp_path / "request.yaml").write_text(f"model_name: a\nimage: b\n{request}\n")
    (finding,) = [each for each in examined(tmp_path / "train.py") if each.subject is Subject.MODEL_DIR]
    assert finding.level is level
    assert words in finding.found


def test_replicas_that_restart_alone_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((TREES / "chief_alone" / "mended.py").read_text())
    request = tmp_path / "request.yaml"
    request.write_text("model_name: a\nimage: b\ncluster: {workers: {count: 1}}\n")
    (finding,) = complaints(examined(tmp_path / "train.py"))
    assert (finding.level, finding.subject) == (Level.WARNING, Subject.CHECKPOINTS)
    request.write_text(request.read_text() + "scheduling: {restart_on_worker_restart: true}\n")
    assert complaints(examined(tmp_path / "train.py")) == []


def test_a_backup_on_the_replicas_own_disk_is_warned_of(tmp_path: Path) -> None:
    source = (TREES / "checkpoints" / "mended.py").read_text()
    (tmp_path / "train.py").write_text(source.replace('os.environ["AIP_CHECKPOINT_DIR"]', '"/tmp/backup"'))
    (finding,) = complaints(examined(tmp_path / "train.py"))
    assert (finding.level, finding.subject) == (Level.WARNING, Subject.CHECKPOINTS)
    assert "'/tmp/backup'" in finding.found
