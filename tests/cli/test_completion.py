"""Shells complete verbs, options and choices."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import trainmaster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def command_folder(tmp_path: Path) -> Path:
    """A folder with the command under its own name, as in an installed package."""
    command = tmp_path / "trainmaster"
    command.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m trainmaster "$@"\n')
    command.chmod(0o755)
    return tmp_path


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    script = (
        'eval "$(trainmaster completion bash)"\n'
        f"COMP_WORDS=({' '.join(words)!s} {'' if words[-1] else repr('')}) COMP_CWORD={len(words) - 1}\n"
        f'_trainmaster_completion trainmaster\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("trainmaster", "champ"), ["champions"]),
        (("trainmaster", "rules", "a"), ["apply"]),
        (("trainmaster", "rules", "ls", "--out"), ["--output"]),
        (("trainmaster", "champions", "ls", "-o", "y"), ["yaml"]),
        (("trainmaster", "stack", "pr"), ["preempt", "provide"]),
        (("trainmaster", "unknown"), []),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_verbs_and_options(
    command_folder: Path, words: tuple[str, ...], offered: list[str]
) -> None:
    assert sorted(completed(command_folder, *words)) == offered


@pytest.mark.parametrize(
    ("shell", "part"),
    [("zsh", "#compdef trainmaster"), ("fish", "complete --no-files --command trainmaster")],
)
def test_other_shells_have_their_script(shell: str, part: str, tmp_path: Path) -> None:
    done = trainmaster("completion", shell, cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert (done.status, done.err) == (0, "")
    assert part in done.out
