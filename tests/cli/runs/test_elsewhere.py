"""Another folder's stack, the only one that runs, is read from here but never changed unless it is chosen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Done, trainmaster
from tests.ready_stack import stack_on
from trainstack.find import register_stack

CHANGES = (
    "submit --script fit.py",
    "cancel some-run",
    "rules apply rule.yaml",
    "rules fire weekly",
    "rules pause weekly",
    "rules resume weekly",
    "rules rm weekly --yes",
    "champions rollback house",
    "dead-letters replay",
    "web --write",
)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Path]:
    """The folder whose stack runs."""
    with stack_on(tmp_path / "far" / ".trainmaster") as state:
        register_stack(state, tmp_path / "settings")
        yield tmp_path / "far"


def run(folder: Path, words: str) -> Done:
    here = folder / "here"
    here.mkdir(exist_ok=True)
    variables = {"HOME": str(folder), "TRAINMASTER_CONFIG": str(folder / "settings")}
    return trainmaster(*words.split(), cwd=here, environment=variables)


@pytest.mark.parametrize("words", CHANGES)
def test_a_verb_that_changes_something_refuses_it_and_prints_both_repairs(
    words: str, tmp_path: Path, far: Path
) -> None:
    done = run(tmp_path, words)
    assert (done.status, done.out) == (4, "")
    assert f"Use that stack: --context local:{far}/.trainmaster\n" in done.err
    assert "Start one here: trainmaster up --detach\n" in done.err


def test_a_verb_that_reads_uses_it(tmp_path: Path, far: Path) -> None:
    assert run(tmp_path, "context").out == f"local:{far}/.trainmaster\n"


def test_down_never_stops_it_and_gives_the_command_that_does(tmp_path: Path, far: Path) -> None:
    done = run(tmp_path, "down")
    assert (done.status, done.out) == (0, "No stack is running on '.trainmaster'.\n")
    assert done.err.startswith("Another folder's stack is running since 2")
    assert done.err.endswith(f". To stop it: trainmaster down --state {far}/.trainmaster\n")
