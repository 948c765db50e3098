"""The command finds every verb, starts at once, and says what is wrong without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_to_end
from tools.set_up.environment import write_command
from trainmaster.cli.command import VERBS, main

ROOT = Path(__file__).resolve().parents[2]
HELP_WITHIN_S = 0.4


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main([verb, "--help"])
    except SystemExit as ended:  # those with their own parser
        status = int(ended.code or 0)
    assert status == 0
    assert f" {verb} " in capsys.readouterr().out


def test_help_is_shown_at_once() -> None:
    """By processor time, and the least of a few: other work on the machine makes a process wait."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    used: list[float] = []
    for _ in range(3):
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "trainmaster", "--help"], cwd=ROOT, env=clean, capture_output=True, check=True
        )  # fmt: skip
        after = os.times()
        used.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    assert min(used) < HELP_WITHIN_S


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["unknown"], "No such command 'unknown'"),
        (["demo", "unknown"], "'training', 'tuning', 'retraining'"),
        (["deploy", "--project", "p"], "Missing option '--region'"),
        (["deploy", "--project", "p", "--region", "r", "--check", "--plan"], "are mutually exclusive"),
        (["deploy", "--project", "my-project", "--region", "a\nb"], "'a\\nb' is not a region"),
        (["undeploy", "--project", "a\nb", "--region", "us-central1"], "'a\\nb' is not a project id"),
        (["doctor", "--project", ""], "Which deployment?"),
        (["dead-letters", "replay", "--wait-s", "-1"], "is not in the range x>=0"),
        (["doctor", "--wait-s", "nan"], "nan is no number of seconds"),
        (["plan", "--for", "nobody", "f"], "'api', 'gcloud'"),
        (["statsu"], "Did you mean 'status'?"),
        (["rules", "resum"], "Did you mean 'resume'?"),
        (["ls", "--modle", "m"], "Did you mean '--model'?"),
        (["submit", "a.yaml", "--wait", "--timeout", "soon"], "for example 90s, 15m, 2h or 1d"),
        (["submit", "a.yaml", "--workers", "-1"], "'--workers'"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_what_is_right(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_the_command_of_a_checkout_works_from_any_folder(tmp_path: Path) -> None:
    """`make setup` writes it; it does not make the folders beside the package importable for other programs."""
    command = tmp_path / "trainmaster"
    write_command(command)
    done = run_to_end([command, "--version"], cwd=tmp_path, env={}, check=True)
    assert done.stdout.startswith("trainmaster ")
