"""The demo touches only its own folder, and ends with a summary."""

import fcntl
import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.watch import sightings
from trainmaster.cli.demo.stage import DemoFailed, Scene, fresh
from trainmaster.cli.demo.training import report
from trainmaster.client.context import context_in_cloud


def test_a_folder_that_no_demo_made_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(DemoFailed, match="contains something other"):
        fresh(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_the_last_demo_is_cleared_away(tmp_path: Path) -> None:
    state = tmp_path / "state"
    fresh(state)
    (state / "old").touch()
    fresh(state)
    assert not (state / "old").exists()


def test_a_demo_that_runs_keeps_its_folder(tmp_path: Path) -> None:
    state = tmp_path / "state"
    fresh(state)
    (state / "work").touch()
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a stack holds it
        lock.write(f'{{"pid": {os.getpid()}}}')
        lock.flush()
        with pytest.raises(DemoFailed, match="A demo is already running"):
            fresh(state)
    assert (state / "work").exists()


@pytest.mark.parametrize("failed", [False, True])
def test_a_demo_ends_with_a_short_summary_and_the_reasons_for_its_status(
    tmp_path: Path, *, failed: bool
) -> None:
    """The model's files are not on this machine, so the demo of a run that succeeded fails there."""
    seen = sightings.ended()
    if failed:
        failure = {"message": "no data", "code": 3}
        seen = replace(seen, run=sightings.run("failed", failure=failure))
    out = io.StringIO()
    target = context_in_cloud("some-project", "us-central1")
    status = report(Console(file=out, width=80), seen, Scene(target=target, state=tmp_path, data_dir=""))
    assert status == 1
    text = out.getvalue()
    assert ("no data" in text) is failed
    assert ("No readable export.json" in text) is not failed
    summary_ = text[text.index("Summary") :].splitlines()[1:]
    assert len(summary_) <= 10
    assert f"gs://some-project-ledger/runs/{seen.run.record.run_id}.json" in text
    assert "2 replicas  step 12/12" in text
