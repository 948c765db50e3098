"""The files of the project are found without git, and are those that git would list."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.plugin.interface import BuilderInterface
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from .files import LEFT_OUT, ROOT, project_files

SOURCES = [".ci/run", "README.md", "trainmaster/builder.py"]
GITIGNORE = ROOT / ".gitignore"
needs_a_checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="no checkout, or no git"
)


@needs_a_checkout
def test_the_names_left_out_are_those_that_git_ignores() -> None:
    assert {line.rstrip("/") for line in GITIGNORE.read_text().splitlines()} == set(LEFT_OUT)


@needs_a_checkout
def test_every_tracked_file_is_found() -> None:
    command = ["git", "ls-files", "-z", "--cached"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    present = {path for path in listed.split("\0") if (ROOT / path).is_file()}
    assert present - set(project_files()) == set()


@pytest.fixture
def used_tree(tmp_path: Path) -> Path:
    """A tree without .git and .gitignore in which every command has been run; three of its files are sources."""
    made = [name.replace("*", "x") for name in LEFT_OUT]
    for name in (*made, *(f"trainmaster/{name}" for name in made)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.md").touch()
    for name in SOURCES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_what_commands_and_tests_make_is_left_out(used_tree: Path) -> None:
    (used_tree / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree
    assert list(project_files(root=used_tree)) == SOURCES


@pytest.mark.parametrize("builder", [SdistBuilder, WheelBuilder])
def test_what_commands_make_is_not_packed_where_no_gitignore_says_so(
    builder: type[BuilderInterface[Any, Any]], used_tree: Path
) -> None:
    shutil.copy(ROOT / "pyproject.toml", used_tree)
    packed = {
        Path(file.path).relative_to(used_tree).as_posix()
        for file in builder(str(used_tree)).recurse_selected_project_files()
    }
    assert packed - {*SOURCES, "pyproject.toml"} == set()
    assert "trainmaster/builder.py" in packed
