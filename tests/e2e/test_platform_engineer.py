"""The tutorial for platform engineers: each of its commands is run, and must print what the page shows."""

from pathlib import Path

import pytest

from .project import ROOT
from .reader import DEADLINE_S, Reader, with_commands

PAGE = ROOT / "docs/tutorials/platform-engineer.md"
FAILS = {"See a request refused": "604800", "Replay a dead letter": "rules fire"}
"""By section, a part of the command that the page expects to fail."""


@pytest.mark.slow(seconds=60)
@pytest.mark.timeout(DEADLINE_S + 200)
def test_a_platform_engineer_sees_caps_a_refusal_a_dead_letter_and_its_replay(tmp_path: Path) -> None:
    reader = Reader(PAGE, tmp_path)
    try:
        said = {title: reader.follow(title, fails=FAILS.get(title, "")) for title in with_commands(PAGE)}
    finally:
        reader.stop()
    assert "DocumentDamaged" in said["Replay a dead letter"]
    assert "vision.nightly fired" in said["Replay a dead letter"]
    assert "FAIL" not in said["Check every part"]
