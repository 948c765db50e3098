"""`submit` warns of faults in a script before it sends it."""

from pathlib import Path

import pytest

from tests.client.submission.test_examination import examined
from trainmaster.cli.submit.script_notes import certain_findings, certain_lines, script_warnings
from trainmaster.cli.submit.submit_verb import warn
from trainmaster.client.submission.source import NO_FILE
from trainmaster.resources import ROOT

SAVES = (ROOT / "examples" / "starter" / "train.py").read_text()
TUNING = """model_name: m
script: {file: train.py}
cluster: {chief: {machine: n1-standard-4}}
tuning:
  metrics: [{id: loss, goal: minimize}]
  parameters: {epochs: {type: integer, min: 1, max: 2}}
  max_trials: 2
  parallel_trials: 1
"""


def warned(script: Path, source: str, request: str = "") -> list[str]:
    script.write_text(source)
    if request:
        found = examined(request, str(script.with_name("request.yaml")))
    else:
        found = examined("", NO_FILE, script=script)
    assert found.request is not None, found.faults
    return list(script_warnings(found))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def test_a_script_that_saves_its_model_gets_no_warning(script: Path) -> None:
    assert warned(script, SAVES) == []


def test_a_script_that_saves_no_model_is_warned_of_with_the_cost_and_the_command_that_says_more(
    script: Path,
) -> None:
    first, last = warned(script, "print(1)\n")
    assert first == (
        f"warning: {script}: The program never reads AIP_MODEL_DIR. "
        "You pay for the training, but its model ends up where nothing looks for it."
    )
    assert last.endswith(f"trainmaster inspect {script}")


def test_a_flag_that_the_program_does_not_declare_is_refused_unless_forced(script: Path) -> None:
    script.write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs')\np.parse_args()\n"
    )
    found = examined("", NO_FILE, script=script, args=("--epoch=1", "--wait"))
    first, last = certain_lines(certain_findings(found))
    assert first.startswith(
        "error: The program gets --wait, and names no such flag. Every replica ends as soon as "
    )
    assert last == "To send it all the same: --force"


def test_a_script_below_the_root_is_read_with_the_modules_of_the_root(tmp_path: Path) -> None:
    for folder in ("jobs", "own"):
        (tmp_path / folder).mkdir()
    (tmp_path / "own" / "__init__.py").write_text("from own import flags\n")
    (tmp_path / "own" / "flags.py").write_text("x = 1\n")
    (tmp_path / "jobs" / "train.py").write_text(
        "import argparse\nfrom own import flags\np = argparse.ArgumentParser()\np.parse_args()\n"
    )
    request = "model_name: m\nscript: {file: jobs/train.py, root: .}\nargs: [--none=1]\n"
    found = examined(request, str(tmp_path / "request.yaml"))
    assert found.request is not None, found.faults
    assert "The program gets --none" in certain_lines(certain_findings(found))[0]


def test_questions_that_only_a_smoke_run_answers_give_no_warnings(script: Path) -> None:
    survives = "from trainer import survive\nsurvive.run(build, data, settings=survive.settings_from())\n"
    assert warned(script, survives, TUNING) == []


def test_of_several_requests_each_bound_of_the_cost_has_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = examined(file=str(tmp_path / "a.yaml"))
    assert made.bounds
    for is_one, said in ((True, ""), (False, f"{made.title}: ")):
        warn(made, is_one=is_one)
        assert capsys.readouterr().err == f"{said}{made.bounds}\n"
