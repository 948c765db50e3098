"""Every fault that the source shows is reported at its line, and the repaired program has none."""

import re
from pathlib import Path

import pytest

from trainmaster.inspect.checks import findings_of
from trainmaster.inspect.checks.examined import Examined
from trainmaster.inspect.finding import Finding, Level, Subject
from trainmaster.inspect.request import read_request
from trainmaster.inspect.source.tree import find_program, tree_at
from trainmaster.inspect.surroundings import Surroundings, surroundings_of

ROOT = Path(__file__).resolve().parents[2]
TREES = Path(__file__).parent / "trees"

FAULTS = {
    "keras_3": (Subject.KERAS, Level.ERROR, "TF_USE_LEGACY_KERAS is never set"),
    "keras_too_late": (Subject.KERAS, Level.ERROR, "is set after tensorflow was imported at"),
    "operation_first": (Subject.STRATEGY, Level.ERROR, "runs before MultiWorkerMirroredStrategy is built at"),
    "chief_alone": (Subject.SAVING, Level.ERROR, "Only the chief reaches `model.save`"),
    "one_directory": (
        Subject.SAVING,
        Level.ERROR,
        "Every replica reaches `model.save` with the same path",
    ),
    "model_dir": (Subject.MODEL_DIR, Level.ERROR, "never reads AIP_MODEL_DIR; `model.save` writes elsewhere"),
    "plain_files": (
        Subject.MODEL_DIR,
        Level.ERROR,
        "`os.makedirs` writes plain files, and AIP_MODEL_DIR, which it is given, is a gs:// URI, and 3 more calls do",
    ),
    "metric_tag": (Subject.METRIC, Level.ERROR, "needs 'accuracy'; the program reports 'val_accuracy'"),
    "parameters": (Subject.PARAMETERS, Level.WARNING, "a discrete parameter may arrive as '64.0'"),
    "roles": (Subject.ROLES, Level.ERROR, "also build MultiWorkerMirroredStrategy"),
    "master": (Subject.ROLES, Level.ERROR, "recognises the chief only as 'master'"),
    "checkpoints": (Subject.CHECKPOINTS, Level.WARNING, "writes no checkpoints"),
}


def examined(program: Path, *, surroundings: Surroundings | None = None) -> list[Finding]:
    """The findings of one file, with the request that lies beside it, if any."""
    request = program.parent / "request.yaml"
    tree = tree_at(program)
    return findings_of(
        Examined(
            program=find_program(tree, None),
            surroundings=surroundings or surroundings_of(tree.root),
            request=read_request(request) if request.exists() else None,
        )
    )


def complaints(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is not Level.OK]


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


@pytest.mark.slow
def test_the_trainer_itself_has_nothing_to_complain_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    tree = tree_at(Path("trainer"))
    request = read_request(Path("examples/tuning.yaml"))
    findings = findings_of(
        Examined(
            program=find_program(tree, "trainer.task"),
            surroundings=surroundings_of(tree.root),
            request=request,
        )
    )
    assert [finding for finding in findings if finding.level is Level.ERROR] == []
    assert {finding.subject for finding in findings} >= {Subject.SAVING, Subject.MODEL_DIR, Subject.METRIC}


def test_a_fault_of_clusters_is_a_warning_where_the_request_has_one_replica(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((TREES / "keras_3" / "faulty.py").read_text())
    (tmp_path / "request.yaml").write_text(
        "model_name: a\nimage: gcr.io/p/b\ncluster: {chief: {machine: n1-standard-4}}\n"
    )
    finding, *of_saving = complaints(examined(tmp_path / "train.py"))
    assert (finding.subject, finding.level) == (Subject.KERAS, Level.WARNING)
    assert {each.subject for each in of_saving} == {Subject.MODEL_DIR}


@pytest.mark.parametrize(
    ("surroundings", "told"),
    [
        (Surroundings(variables={"TF_USE_LEGACY_KERAS": "1"}), "is set by the image or the request"),
        (Surroundings(tensorflow=(2, 15)), "TensorFlow 2.15 has Keras 2"),
    ],
)
def test_the_image_determines_the_keras_version(surroundings: Surroundings, told: str) -> None:
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
    finding, of_saving = complaints(examined(tmp_path / "train.py"))
    assert "`import keras` is Keras 3" in finding.found
    assert "Keras 3 saves only to a file" in of_saving.found


def test_imports_inside_a_package_are_followed_and_others_are_not(tmp_path: Path) -> None:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "task.py").write_text(
        "from . import places\nfrom trainer.steps import train\ntrain(places.MODEL)\n"
    )
    (package / "places.py").write_text('import os\nMODEL = os.environ["AIP_MODEL_DIR"]\n')
    (package / "steps.py").write_text("def train(path): ...\n")
    (package / "old.py").write_text("this is not valid Python\n")
    findings = examined(package)
    assert complaints(findings) == []
    (read,) = [finding for finding in findings if finding.subject is Subject.MODEL_DIR]
    assert str(read.place).endswith("places.py:2")

    (package / "steps.py").write_text("import trainer.old\ndef train(path): ...\n")
    (broken,) = complaints(examined(package))
    assert (broken.level, broken.subject) == (Level.ERROR, Subject.SOURCE)
    assert re.search(r"old\.py:1$", str(broken.place))


@pytest.mark.parametrize("told", ["-m", "script"])
def test_a_scripts_neighbours_are_found_as_python_finds_them(told: str, tmp_path: Path) -> None:
    folder = tmp_path / "training"
    folder.mkdir()
    (folder / "places.py").write_text('import os\nMODEL = os.environ["AIP_MODEL_DIR"]\n')
    (folder / "train.py").write_text(
        "import places\nplaces.MODEL\n" if told == "script" else "from training import places\nplaces.MODEL\n"
    )
    tree = tree_at(tmp_path)
    program = find_program(tree, "training.train")
    assert len(program.modules) == 2
    assert program.is_whole


def test_what_another_package_may_do_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import ours_elsewhere\nours_elsewhere.train()\n")
    (tmp_path / "request.yaml").write_text((TREES / "metric_tag" / "request.yaml").read_text())
    found = complaints(examined(tmp_path / "train.py"))
    assert {finding.level for finding in found} == {Level.UNKNOWN}
    assert {finding.subject for finding in found} == {Subject.MODEL_DIR, Subject.METRIC, Subject.PARAMETERS}


def test_replicas_that_restart_alone_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((TREES / "chief_alone" / "mended.py").read_text())
    request = tmp_path / "request.yaml"
    request.write_text(
        "model_name: a\nimage: gcr.io/p/b\n"
        "cluster: {chief: {machine: n1-standard-4}, workers: {machine: n1-standard-4, count: 1}}\n"
    )
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


def test_programs_that_cannot_be_continued_need_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("scikit-learn\n")
    (tmp_path / "train.py").write_text(
        "import joblib, os\nfrom sklearn.linear_model import SGDClassifier\nmodel = SGDClassifier()\n"
        'model.fit(x, y)\njoblib.dump(model, os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1) + "model.joblib")\n'
    )
    assert complaints(examined(tmp_path / "train.py")) == []


def test_an_image_of_an_older_tensorflow_is_known_by_its_name(tmp_path: Path) -> None:
    program = TREES / "keras_3" / "mended.py"
    (tmp_path / "train.py").write_text(
        program.read_text().replace('os.environ["TF_USE_LEGACY_KERAS"] = "1"', "")
    )
    (tmp_path / "Dockerfile").write_text("FROM gcr.io/deeplearning-platform-release/tf2-gpu.2-11\n")
    assert complaints(examined(tmp_path / "train.py")) == []


def test_a_relative_import_of_a_script_without_a_package_is_examined(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from . import data\n")
    (tmp_path / "data.py").write_text("import os\nos.environ['AIP_MODEL_DIR']\n")
    assert complaints(examined(tmp_path / "train.py")) == []
