"""What programs write in many ways: who saves, what is reported, which flags there are, where the model goes."""

from pathlib import Path

import pytest

from tests.inspect.test_checks import HEADER, TREES, complaints, examined
from trainmaster.inspect.finding import Finding, Level, Subject

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
    "the guard is in the caller": (
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
        (Level.ERROR, "the same path"),
    ),
    "a path that the source does not explain": (
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
    "an image is not a model": (
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
def test_the_saving_replica_is_reported_as_far_as_the_source_shows_it(name: str, tmp_path: Path) -> None:
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


ARGPARSE = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", "-e", type=int)
parser.add_argument("--augment", action=argparse.BooleanOptionalAction)
os.environ["AIP_MODEL_DIR"]
"""
ABSL = """
import os
from absl import app, flags
flags.DEFINE_integer("epochs", 1, "")
flags.DEFINE_bool("augment", True, "")
os.environ["AIP_MODEL_DIR"]
"""
CLICK = """
import click, os
@click.command()
@click.option("--epochs", type=int)
@click.option("--augment/--no-augment", default=True)
def main(epochs, augment): os.environ["AIP_MODEL_DIR"]
"""
PARSED, IGNORED = "parser.parse_args()", "parser.parse_known_args()"
START = 'ENTRYPOINT ["python", "train.py"]'
GIVEN = [
    (
        ARGPARSE + PARSED,
        START,
        "args: [--epochs=2, --augment, --no-augment, --help]",
        Level.OK,
        "The program takes",
    ),
    (
        ARGPARSE + PARSED,
        START,
        "args: [--epoch=2]",
        Level.OK,
        "takes --epoch",
    ),  # argparse takes a flag's beginning
    (ARGPARSE + PARSED, START, "args: [--epohcs, '2']", Level.ERROR, "--epohcs is given, and"),
    (ARGPARSE + PARSED, "", "args: [--epohcs=2]", Level.ERROR, "Did you mean 'epochs'?"),
    (ARGPARSE + IGNORED, START, "args: [--epohcs=2]", Level.WARNING, "drops it. Did you mean 'epochs'?"),
    (ARGPARSE + PARSED, START, "command: [python, train.py, --lr=1]", Level.ERROR, "--lr is given"),
    (
        ARGPARSE + PARSED,
        'CMD ["python", "train.py", "--epohcs=2"]',
        "",
        Level.ERROR,
        "Did you mean 'epochs'?",
    ),
    (ARGPARSE + PARSED, f'{START}\nCMD ["--epohcs=2"]', "", Level.ERROR, "Did you mean 'epochs'?"),
    (ARGPARSE + PARSED, f'{START}\nCMD ["--epohcs=2"]', "args: [--epochs=2]", Level.OK, "takes --epochs"),
    (ARGPARSE + PARSED, 'CMD ["python", "train.py"]', "args: [--epochs=2]", Level.ERROR, "args replace"),
    (
        ARGPARSE + PARSED,
        'CMD ["python", "train.py"]',
        "args: [python, train.py, --x=1]",
        Level.ERROR,
        "--x is",
    ),
    (ABSL, START, "args: [--epochs=2, --noaugment, --verbosity=1]", Level.OK, "The program takes"),
    (ABSL, START, "args: [--epohcs=2]", Level.ERROR, "Did you mean 'epochs'?"),
    (CLICK, START, "args: [--epochs=2, --no-augment]", Level.OK, "The program takes"),
    (CLICK, START, "args: [--epohcs=2]", Level.ERROR, "Did you mean 'epochs'?"),
    (
        ARGPARSE + PARSED,
        'ENTRYPOINT ["python", "-m", "trainer.launch", "--framework", "torch", "--", "python", "train.py"]',
        "args: [--epochs=2]",
        Level.OK,
        "takes --epochs",
    ),
]


@pytest.mark.parametrize(("source", "dockerfile", "request_lines", "level", "words"), GIVEN)
def test_a_flag_that_is_given_must_be_one_that_the_program_declares(
    source: str, dockerfile: str, request_lines: str, level: Level, words: str, tmp_path: Path
) -> None:
    found = arguments(tmp_path, source, dockerfile, request_lines)
    assert [(each.level, words in each.found) for each in found if words in each.found] == [(level, True)]
    assert (level is Level.OK) == all(each.level is Level.OK for each in found)


UNKNOWN = [
    (f"import deepspeed\n{ARGPARSE}deepspeed.add_config_arguments(parser)\n{PARSED}", START),
    ("import os\nos.environ['AIP_MODEL_DIR']", START),
    ("import argparse\nfor name in NAMES:\n    parser.add_argument(name)\nparser.parse_args()", START),
    (ARGPARSE + PARSED, 'ENTRYPOINT ["sh", "-c", "python train.py --epochs=$EPOCHS"]'),
    (f"import a_package_of_theirs\n{ARGPARSE}{PARSED}", START),
]


@pytest.mark.parametrize(("source", "dockerfile"), UNKNOWN)
def test_flags_that_may_go_elsewhere_are_not_complained_of(
    source: str, dockerfile: str, tmp_path: Path
) -> None:
    assert arguments(tmp_path, source, dockerfile, "args: [--epohcs=2]") == []


def arguments(tree: Path, source: str, dockerfile: str, request_lines: str) -> list[Finding]:
    (tree / "train.py").write_text(source)
    (tree / "Dockerfile").write_text(f"FROM python:3.11\n{dockerfile}\n")
    request = (
        f"model_name: a\nimage: gcr.io/p/b\ncluster: {{chief: {{machine: n1-standard-4}}}}\n{request_lines}\n"
    )
    (tree / "request.yaml").write_text(request)
    return [each for each in examined(tree / "train.py") if each.subject is Subject.ARGUMENTS]


REPAIRS = [
    ("import torch\nloss.backward()", "the training loop", "torch.save"),
    ("import tensorflow as tf\nmodel.fit(data)", "a Keras callback", "BackupAndRestore"),
    ("import torch, lightning\nmodel.fit(data)", "the training loop", "ckpt_path"),
]


@pytest.mark.parametrize(("source", "report", "checkpoint"), REPAIRS)
def test_a_repair_fits_the_programs_framework(
    source: str, report: str, checkpoint: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"{source}\n")
    (tmp_path / "request.yaml").write_text((TREES / "metric_tag" / "request.yaml").read_text())
    repairs = {each.subject: each.repair for each in examined(tmp_path / "train.py")}
    assert report in repairs[Subject.METRIC]
    assert "hyperparameter_metric_tag='accuracy'" in repairs[Subject.METRIC]
    assert checkpoint in repairs[Subject.CHECKPOINTS]
    assert ("keras" in repairs[Subject.CHECKPOINTS]) == ("tensorflow" in source)


MODEL_DIRS = {
    "print('nothing')": ("", Level.ERROR, "never reads AIP_MODEL_DIR"),
    '"""AIP_MODEL_DIR is described here and read nowhere."""': ("", Level.ERROR, "never reads"),
    "parser.add_argument('--job-dir')": ("", Level.WARNING, "reads --job-dir but not"),
    "parser.add_argument('--job-dir', help='where')": (
        "args: [--job-dir=gs://b/o]",
        Level.OK,
        "The request passes",
    ),
    "parser.add_argument('--job-dir', help='')": (
        "args: [--epochs=1]",
        Level.ERROR,
        "does not pass --job-dir",
    ),
    "parser.add_argument('--model_dir')": (
        "args: ['--model_dir=$(AIP_MODEL_DIR)']",
        Level.ERROR,
        "which reaches the program as it is written",
    ),
    "parser.add_argument('--model_dir', default=os.environ['AIP_MODEL_DIR'])": (
        "args: ['--model_dir=$(AIP_MODEL_DIR)']",
        Level.ERROR,
        "which reaches the program as it is written",
    ),
    "os.environ['MODEL_DIR']": ("env: {MODEL_DIR: $(AIP_MODEL_DIR)}", Level.OK, "is passed"),
    "model.save('gs://bucket/codelab/m')": (
        "model_uri: gs://bucket/codelab",
        Level.OK,
        "to the request's model_uri",
    ),
    "model.save('gs://bucket/others/m')": ("model_uri: gs://bucket/codelab", Level.ERROR, "never reads"),
    "parser.add_argument('--export-dir')": (
        "args: ['--export-dir=gs://bucket/m/${run_id}']\nmodel_uri: gs://bucket/m/${run_id}",
        Level.OK,
        "to the request's model_uri",
    ),
    "subprocess.Popen(['train'])": ("", Level.UNKNOWN, "Could not tell"),
    "from google.cloud.aiplatform.training_utils import environment_variables as e": (
        "",
        Level.OK,
        "is passed",
    ),
}


@pytest.mark.parametrize("source", MODEL_DIRS)
def test_the_model_must_go_where_it_is_looked_for(source: str, tmp_path: Path) -> None:
    request, level, words = MODEL_DIRS[source]
    (tmp_path / "train.py").write_text(
        f"import subprocess\n{source}\n" if "Popen" in source else f"{source}\n"
    )
    if request:
        (tmp_path / "request.yaml").write_text(
            f"model_name: a\nimage: gcr.io/p/b\ncluster: {{chief: {{machine: n1-standard-4}}}}\n{request}\n"
        )
    (finding,) = [each for each in examined(tmp_path / "train.py") if each.subject is Subject.MODEL_DIR]
    assert finding.level is level
    assert words in finding.found
