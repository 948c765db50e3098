"""Checks of the source report a fault at its place, say what they did not follow, and call neither ok."""

from pathlib import Path

import pytest

from trainmaster.inspect.checks import findings_of
from trainmaster.inspect.finding import FindingSubject, Level, ProgramFinding
from trainmaster.inspect.request import read_request
from trainmaster.inspect.start import Examined, surroundings_of
from trainmaster.inspect.tree import read_source, tree_at

STUDY = """
model_name: m
{program}
cluster: {{chief: {{machine: n1-standard-4}}}}
tuning:
  metrics: [{{id: loss, goal: minimize}}]
  parameters: {{lr: {{type: double, min: 0.1, max: 1}}, units: {{type: discrete, values: [64, 128]}}}}
  max_trials: 2
"""
JOB = "model_name: m\n{program}\ncluster: {{chief: {{machine: n1-standard-4}}}}\n"
IMAGE, SCRIPT = "image: gcr.io/p/i", "script: {file: train.py}"
PARSER = "import argparse, os\nparser = argparse.ArgumentParser()\n"
FLAGS = f'{PARSER}parser.add_argument("--lr")\nparser.add_argument("--units")\n'


def examined(folder: Path, source: str, request: str = "", dockerfile: str = "") -> list[ProgramFinding]:
    """The findings of one file, with a request and a Dockerfile, if any."""
    (folder / "train.py").write_text(source)
    if dockerfile:
        (folder / "Dockerfile").write_text(dockerfile)
    (folder / "request.yaml").write_text(request)
    tree = tree_at(folder)
    return findings_of(
        Examined(
            source=read_source(tree, None),
            surroundings=surroundings_of(tree.root),
            request=read_request(folder / "request.yaml") if request else None,
        )
    )


def about(
    findings: list[ProgramFinding], subject: FindingSubject, level: Level | None = None
) -> list[ProgramFinding]:
    """The findings of this subject, of one level or of any."""
    return [each for each in findings if each.subject is subject and level in (None, each.level)]


def levels_of(findings: list[ProgramFinding], subject: FindingSubject) -> list[Level]:
    return [finding.level for finding in about(findings, subject)]


def test_only_that_the_files_parse_is_ok_without_running_them(tmp_path: Path) -> None:
    source = f'{FLAGS}parser.parse_args()\nopen(os.environ["AIP_MODEL_DIR"])\nreport_hyperparameter_tuning_metric("loss", 1)'
    findings = examined(tmp_path, source, STUDY.format(program=SCRIPT))
    assert [(finding.subject, finding.level) for finding in findings] == [
        (FindingSubject.SOURCE, Level.OK),
        (FindingSubject.PARAMETERS, Level.NOT_FOLLOWED),
        (FindingSubject.METRIC, Level.NOT_FOLLOWED),
        (FindingSubject.MODEL_DIR, Level.NOT_FOLLOWED),
    ]
    assert all("smoke run" in finding.repair for finding in findings[1:])


@pytest.mark.parametrize(
    "source",
    [
        'import xgboost\nxgboost.train({}, d).save_model(os.environ["AIP_MODEL_DIR"] + "/model.json")',
        'import torch\ntorch.save({}, os.environ["AIP_CHECKPOINT_DIR"] + "/last.pt")\nprint("AIP_MODEL_DIR")',
        'import keras\nkeras.callbacks.ModelCheckpoint(os.environ["AIP_MODEL_DIR"] + "/best.h5")',
    ],
    ids=["xgboost", "torch.save of checkpoints", "Keras 3 and HDF5"],
)
def test_what_a_library_does_with_the_path_is_not_followed(source: str, tmp_path: Path) -> None:
    findings = examined(tmp_path, f"import os\n{source}\n")
    assert levels_of(findings, FindingSubject.MODEL_DIR) == [Level.NOT_FOLLOWED]


# The model directory


@pytest.mark.parametrize(
    ("source", "level"),
    [
        ("print(1)", Level.ERROR),
        ("import joblib\njoblib.dump(1, 'model')", Level.ERROR),
        ("import os\nos.environ['AIP_MODEL_DIR']", Level.NOT_FOLLOWED),
        ("import os\nos.environ['AIP_' + 'MODEL_DIR']", Level.NOT_FOLLOWED),
        ("import subprocess\nsubprocess.run(['./train'])", Level.NOT_FOLLOWED),
        ("import ours_elsewhere", Level.NOT_FOLLOWED),
        ("from trainer import survive", Level.NOT_FOLLOWED),
        ("from google.cloud.aiplatform.training_utils import environment_variables", Level.NOT_FOLLOWED),
        ("import argparse\nargparse.ArgumentParser().add_argument('--job-dir')", Level.NOT_FOLLOWED),
    ],
)
def test_the_model_directory_is_missed_only_where_nothing_else_can_name_it(
    source: str, level: Level, tmp_path: Path
) -> None:
    assert levels_of(examined(tmp_path, source), FindingSubject.MODEL_DIR) == [level]


@pytest.mark.parametrize(
    ("program", "level", "words"),
    [
        (f"{IMAGE}\nargs: [--out=$(AIP_MODEL_DIR)]", Level.ERROR, "reaches the program as it is written"),
        (f"{IMAGE}\nmodel_uri: gs://bucket/m", Level.NOT_FOLLOWED, "model_uri says where"),
        (f"{IMAGE}\nenv: {{OUT: $(AIP_MODEL_DIR)}}", Level.NOT_FOLLOWED, "is given it"),
        (IMAGE, Level.ERROR, "never reads AIP_MODEL_DIR"),
    ],
)
def test_a_request_can_pass_the_model_directory(
    program: str, level: Level, words: str, tmp_path: Path
) -> None:
    findings = examined(tmp_path, "print(1)", JOB.format(program=program))
    (finding,) = about(findings, FindingSubject.MODEL_DIR)
    assert finding.level is level
    assert words in finding.found


# The metric


@pytest.mark.parametrize(
    ("report", "level", "words"),
    [
        ('h.report_hyperparameter_tuning_metric(hyperparameter_metric_tag="loss")', Level.NOT_FOLLOWED, "a call here"),
        ("h.report_hyperparameter_tuning_metric(metric_value=1)", Level.ERROR, "'training/hptuning/metric'"),
        ('h.report_hyperparameter_tuning_metric("losss", 1)', Level.ERROR, "Did you mean 'losss'?"),
        ('h.report_hyperparameter_tuning_metric(os.environ["TAG"], 1)', Level.NOT_FOLLOWED, "whether trials report 'loss'"),
        ("h.report_hyperparameter_tuning_metric(**given)", Level.NOT_FOLLOWED, "whether trials report 'loss'"),
        ('open(os.environ["CLOUD_ML_HP_METRIC_FILE"])', Level.NOT_FOLLOWED, "whether trials report 'loss'"),
        ("pass", Level.ERROR, "the program reports no metric"),
        ("import ours_elsewhere", Level.NOT_FOLLOWED, "whether a metric is reported: ours_elsewhere"),
    ],
)  # fmt: skip
def test_a_report_is_compared_with_the_study(report: str, level: Level, words: str, tmp_path: Path) -> None:
    findings = examined(tmp_path, f"import os\n{report}\n", STUDY.format(program=SCRIPT))
    (finding,) = about(findings, FindingSubject.METRIC)
    assert finding.level is level
    assert words in finding.found


# Flags


@pytest.mark.parametrize(
    ("source", "level", "words"),
    [
        (f"{FLAGS}parser.parse_args()", Level.NOT_FOLLOWED, "--lr, --units"),
        (f"{PARSER}parser.add_argument('--rate')\nparser.parse_args()", Level.ERROR, "names no such flag"),
        (f"{PARSER}known, _ = parser.parse_known_args()", Level.WARNING, "parse_known_args at "),
        (f"{PARSER}known, rest = parser.parse_known_args()", Level.WARNING, "drops it"),
        (f"{PARSER}known = parser.parse_known_args()[0]", Level.WARNING, "drops it"),
        (
            f"{PARSER}known, rest = parser.parse_known_args()\nconfig = dict(word.split('=') for word in rest)",
            Level.NOT_FOLLOWED,
            "what parse_known_args leaves at",
        ),
        (f"{PARSER}for name in os.listdir(): parser.add_argument(name)\nparser.parse_args()", Level.NOT_FOLLOWED, "without a name"),
        ("from absl import flags\nflags.DEFINE_float('rate', 0.1, '')", Level.NOT_FOLLOWED, "without a name"),
        ("from trainer import survive\nsurvive.settings_from()", Level.NOT_FOLLOWED, "not in the tree"),
        (f"{PARSER}parser.parse_args([w.replace('-', '_') for w in os.sys.argv])", Level.NOT_FOLLOWED, "dashes"),
        ("pass", Level.NOT_FOLLOWED, "no call of argparse"),
    ],
)  # fmt: skip
def test_a_parameter_must_be_a_flag_where_the_source_names_all_flags(
    source: str, level: Level, words: str, tmp_path: Path
) -> None:
    findings = examined(tmp_path, source, STUDY.format(program=SCRIPT))
    found = [finding.found for finding in about(findings, FindingSubject.PARAMETERS, level)]
    assert any(words in text for text in found), findings
    assert level is not Level.NOT_FOLLOWED or len(found) == 1


def test_a_discrete_parameter_that_is_read_as_an_int_is_warned_of(tmp_path: Path) -> None:
    source = (
        f'{PARSER}parser.add_argument("--lr")\nparser.add_argument("--units", type=int)\nparser.parse_args()'
    )
    findings = examined(tmp_path, source, STUDY.format(program=SCRIPT))
    (finding,) = about(findings, FindingSubject.PARAMETERS, Level.WARNING)
    assert "--units is parsed with type=int, but a discrete parameter may arrive as '64.0'" in finding.found
    assert finding.repair.startswith("Read it with type=lambda text: int(float(text))")
    assert str(finding.place).endswith("train.py:4")


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        ("[--epochs=1, --no-augment, -e, '2', --ep=1, --help]", []),
        ("[--epoch_count=1]", ["--epoch_count"]),
        ("[--epochs=1, --rate=2, --x]", ["--rate", "--x"]),
    ],
)
def test_arguments_of_the_request_must_be_flags(args: str, errors: list[str], tmp_path: Path) -> None:
    source = (
        f'{PARSER}parser.add_argument("--epochs", "-e")\n'
        'parser.add_argument("--augment", action=argparse.BooleanOptionalAction)\nparser.parse_args()'
    )
    findings = examined(tmp_path, source, JOB.format(program=f"{SCRIPT}\nargs: {args}"))
    faults = about(findings, FindingSubject.ARGUMENTS, Level.ERROR)
    assert [finding.found.split()[3].rstrip(",") for finding in faults] == errors


@pytest.mark.parametrize(
    ("words", "is_warned"),
    [("--epochs 3", True), ("--note=two words", False), ("two words", False), ("--epochs=3", False)],
)
def test_two_words_in_one_element_are_warned_of(words: str, *, is_warned: bool, tmp_path: Path) -> None:
    findings = examined(tmp_path, "print(1)", JOB.format(program=f"{SCRIPT}\nargs: ['{words}']"))
    warned = [finding for finding in findings if finding.level is Level.WARNING]
    assert [finding.repair for finding in warned] == ["Write --epochs=3, or two elements."] * is_warned


# How the job starts the program


@pytest.mark.parametrize(
    ("dockerfile", "command", "is_dropped"),
    [
        ("ENTRYPOINT python /train.py", "", True),
        ('ENTRYPOINT ["sh", "-c", "python train.py --data=$DATA"]', "", True),
        ('ENTRYPOINT ["python", "/train.py"]', "", False),
        ('ENTRYPOINT ["bash", "-lc", "python train.py $0 $@"]', "", False),
        ('ENTRYPOINT exec python /train.py "$@"', "", False),
        ("ENTRYPOINT python /train.py", "command: [python, /train.py]", False),
        ('ENTRYPOINT ["python", "/train.py"]', "command: [bash, -c, python train.py]", True),
        ("", "command: [our-tool, --mode=fast]", False),
    ],
)
def test_a_shell_that_ignores_arguments_is_an_error_of_a_study(
    dockerfile: str, command: str, *, is_dropped: bool, tmp_path: Path
) -> None:
    source, request = f"{FLAGS}parser.parse_args()", STUDY.format(program=f"{IMAGE}\n{command}")
    findings = examined(tmp_path, source, request, f"FROM a\n{dockerfile}\n")
    errors = about(findings, FindingSubject.ARGUMENTS, Level.ERROR)
    assert ["--lr does not reach the program" in finding.found for finding in errors] == [True] * is_dropped
    assert Level.OK not in levels_of(findings, FindingSubject.PARAMETERS)


@pytest.mark.parametrize("cmd", ['["python", "train.py"]', "python train.py"])
def test_arguments_that_replace_the_program_in_cmd_are_an_error(cmd: str, tmp_path: Path) -> None:
    request = JOB.format(program=f"{IMAGE}\nargs: [--epochs=1]")
    findings = examined(tmp_path, "print(1)", request, f"FROM a\nCMD {cmd}\n")
    (finding,) = about(findings, FindingSubject.ARGUMENTS)
    assert finding.repair == 'Write ENTRYPOINT ["python", "train.py"] in the Dockerfile in place of CMD.'
    for fixed in (f"ENTRYPOINT {cmd}", f'ENTRYPOINT ["python"]\nCMD {cmd}'):
        findings = examined(tmp_path, "print(1)", request, f"FROM a\n{fixed}\n")
        assert not [finding for finding in findings if "in place of CMD" in finding.repair]


# The files


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
    source = read_source(tree_at(package), None)
    assert source.gap == ""
    assert str(source.mention("AIP_MODEL_DIR")).endswith("places.py:2")

    (package / "steps.py").write_text("import trainer.old\ndef train(path): ...\n")
    broken = read_source(tree_at(package), None)
    assert "old.py cannot be read" in broken.gap
    (finding, *_) = findings_of(Examined(source=broken, surroundings=surroundings_of(package)))
    assert (finding.level, finding.subject) == (Level.ERROR, FindingSubject.SOURCE)
    assert str(finding.place).endswith("old.py:1")


@pytest.mark.parametrize("line", ["import places", "from training import places", "from . import places"])
def test_a_scripts_neighbours_are_found_as_python_finds_them(line: str, tmp_path: Path) -> None:
    folder = tmp_path / "training"
    folder.mkdir()
    (folder / "places.py").write_text("MODEL = 'AIP_MODEL_DIR'\n")
    (folder / "train.py").write_text(f"{line}\n")
    source = read_source(tree_at(tmp_path), "training.train")
    assert (len(source.modules), source.gap) == (2, "")


# Logging


@pytest.mark.parametrize(
    "line",
    [
        "import logging, google.cloud.logging\ngoogle.cloud.logging.Client().setup_logging()",
        "from google.cloud import logging as cloud\nclient = cloud.Client()\nclient.setup_logging()",
    ],
)
def test_a_call_that_takes_errors_out_of_the_jobs_log_is_warned_of(line: str, tmp_path: Path) -> None:
    (finding,) = about(examined(tmp_path, line), FindingSubject.LOGGING)
    assert (finding.level, finding.place and finding.place.line) == (Level.WARNING, line.count("\n") + 1)
    assert levels_of(examined(tmp_path, "ours.setup_logging()"), FindingSubject.LOGGING) == []
