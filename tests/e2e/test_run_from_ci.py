"""The page "Train from CI": its commands are run, the second time as by a pipeline that is started again."""

import json
from pathlib import Path

import pytest

from .project import ROOT
from .reader import DEADLINE_S, Reader

PAGE = ROOT / "docs/how-to/run-from-ci.md"


@pytest.mark.slow(seconds=30)
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_pipeline_that_is_started_again_waits_for_the_same_run(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    reader = Reader(PAGE, tmp_path / "project")
    try:
        reader.follow("On a pull request")
        reader.follow("On a merge")
        first = json.loads((tmp_path / "run.json").read_text())
        reader.follow("On a merge")
        assert json.loads((tmp_path / "run.json").read_text())["run_id"] == first["run_id"]
        assert first["state"] == "succeeded"
        assert first["model"]["metrics"]
    finally:
        reader.stop()
