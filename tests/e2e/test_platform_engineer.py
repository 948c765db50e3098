"""The tutorial for platform engineers: each of its commands is run, and must print what the page shows."""

import shutil
from pathlib import Path

import pytest

from .project import ROOT
from .reader import DEADLINE_S, Reader, with_commands

PAGE = ROOT / "docs/tutorials/platform-engineer.md"
FAILS = {
    "See a request refused": "604800",
    "Replay a dead letter": "rules fire",
    "Ask what a deployment would do": "deploy",
}
"""By section, a part of the command that the page expects to fail."""


@pytest.mark.slow(seconds=85)
@pytest.mark.timeout(DEADLINE_S + 200)
def test_a_platform_engineer_sees_a_refusal_a_dead_letter_an_alert_and_an_upgrade(tmp_path: Path) -> None:
    reader = Reader(PAGE, tmp_path)
    titles = [
        each for each in with_commands(PAGE) if each != "Let an alert start a run" or shutil.which("gcloud")
    ]
    try:
        said = {title: reader.follow(title, fails=FAILS.get(title, "")) for title in titles}
    finally:
        reader.stop()
    assert "DocumentDamaged" in said["Replay a dead letter"]
    assert "vision.nightly fired" in said["Replay a dead letter"]
    assert "FAIL" not in said["Check every part"]
