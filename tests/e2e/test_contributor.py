"""The tutorial for contributors: its change is made in a copy of this tree, and its tests run there."""

import shutil
from pathlib import Path

import pytest

from tests.repo.files import project_files

from .project import ROOT
from .reader import DEADLINE_S, Reader, with_commands

PAGE = ROOT / "docs/tutorials/contributor.md"
FAILS = {"Write a failing test": "pytest", "See it in the command": "check"}
"""By section, a part of the command that the page expects to fail."""


@pytest.mark.slow(seconds=30)
@pytest.mark.timeout(DEADLINE_S)
def test_a_contributor_adds_a_fault_that_its_test_and_the_command_show(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in project_files():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    (tmp_path / "reader").mkdir()
    reader = Reader(PAGE, tmp_path / "reader")
    command = reader.folder / "bin" / "trainmaster"
    command.write_text(command.read_text().replace(f'"{ROOT}"', f'"{tree}"'))
    reader.folder = tree
    said = {title: reader.follow(title, fails=FAILS.get(title, "")) for title in with_commands(PAGE)}
    assert "1 failed" in said["Write a failing test"]
    assert " failed" not in said["Add the fault"]
