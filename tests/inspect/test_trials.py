"""A study's program is run twice, and whether its parameters arrive is judged by what it refuses and reports."""

from pathlib import Path

import pytest

from tests.inspect.test_smoke import inspected, written

STUDY = """
model_name: small
image: gcr.io/p/i
args: [--data=x]
cluster: {chief: {machine: n1-standard-4}}
tuning:
  metrics: [{id: accuracy, goal: maximize}]
  parameters: {lr: {type: double, min: 0.1, max: 1}, num_units: {type: discrete, values: [64, 128]}}
  max_trials: 2
"""
PARSER = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--lr", type=float, default=0.3)
"""
REPORTS = """
def report(tag, value):
    report = {"trial": os.environ["CLOUD_ML_TRIAL_ID"], "global_step": "1", tag: str(value)}
    pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"]).write_text(json.dumps(report))
pathlib.Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1), "saved_model.pb").touch()
"""
UNITS = 'parser.add_argument("--num_units", type=lambda text: int(float(text)))\n'


def of_study(
    folder: Path, source: str, status: int, request: str = STUDY
) -> dict[str, list[tuple[str, str]]]:
    """By subject, the levels and texts of a smoke run with a study's request."""
    (folder / "request.yaml").write_text(request)
    program = written(folder, source)
    findings: dict[str, list[tuple[str, str]]] = {}
    for found in inspected(folder, "--smoke", "--request", str(folder / "request.yaml"), status=status):
        findings.setdefault(found["subject"], []).append((found["level"], found["found"]))
    assert program.exists()
    return findings


@pytest.mark.parametrize(
    ("tag", "status", "found"),
    [
        ("accuracy", 0, ("ok", "chief-0 reported the study's metric 'accuracy'")),
        (
            "acuracy",
            1,
            ("error", "chief-0 reported 'acuracy'; the study needs 'accuracy'. Did you mean 'acuracy'?"),
        ),
    ],
)
def test_a_trial_is_run_as_one_and_what_it_reports_is_read(
    tag: str, status: int, found: tuple[str, str], tmp_path: Path
) -> None:
    source = (
        f"{PARSER}{UNITS}args = parser.parse_args()\nTAG = {tag!r}\n{REPORTS}report(TAG, args.num_units)\n"
    )
    assert of_study(tmp_path, source, status)["metric"] == [found]


def test_a_program_that_refuses_unknown_flags_takes_the_studys_parameters(tmp_path: Path) -> None:
    source = f"{PARSER}{UNITS}parser.parse_args()\n{REPORTS}report('accuracy', 0.5)\n"
    assert of_study(tmp_path, source, 0)["parameters"] == [
        ("ok", "The program takes --lr, --num_units: it refuses a flag that it does not know")
    ]


@pytest.mark.parametrize(
    ("value", "level", "words"),
    [
        ("0.5", "warning", "Two trials reported the same accuracy, though every parameter had another value"),
        ("rest['num_units']", "not followed", "accuracy=64.0, then accuracy=128.0"),
    ],
    ids=["ignored", "used"],
)
def test_a_program_that_takes_any_flag_is_judged_by_two_trials(
    value: str, level: str, words: str, tmp_path: Path
) -> None:
    parse = "_, rest = parser.parse_known_args()\nrest = dict(word[2:].split('=') for word in rest)\n"
    (finding,) = of_study(tmp_path, f"{PARSER}{parse}{REPORTS}report('accuracy', {value})\n", 0)["parameters"]
    assert (finding[0], words in finding[1]) == (level, True), finding
