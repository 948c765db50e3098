"""The demo touches nothing that is not its own, and tells a still terminal each thing once."""

import fcntl
import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from trainmaster.cli.demo.stage import DemoFailed, fresh
from trainmaster.cli.demo.training import news, picture
from trainmaster.cli.demo.view import View
from trainmaster.cli.demo.watch import Sighting
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress

DROPPED = datetime(2026, 1, 1, tzinfo=UTC)


def sighting(**more: object) -> Sighting:
    return Sighting(dropped_uri="gs://inbox/requests/demo.yaml", dropped_at=DROPPED, **more)  # type: ignore[arg-type]  # each test names only the parts it is about


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


@pytest.mark.parametrize(("state", "over"), [("running", False), ("succeeded", True), ("rejected", True)])
def test_the_demo_waits_for_the_record_to_end(state: str, *, over: bool) -> None:
    assert sighting(record={"state": state}).ended is over
    assert not sighting().ended


def test_a_static_terminal_shows_each_hop_once() -> None:
    out = io.StringIO()
    shown = View(Console(file=out, force_terminal=False, width=200), picture=picture, news=news)
    chief = ReplicaProgress(replica="chief-0", steps_done=5, steps_total=20, loss=1.5, epochs=2, epoch=1)
    running = sighting(
        job_started_at=DROPPED + timedelta(seconds=2), training=TrainingProgress(replicas={"chief-0": chief})
    )
    with shown.running():
        for seen in (sighting(), running, running):
            shown.show(seen)
    printed = out.getvalue()
    assert printed.count("Request dropped") == 1
    assert printed.count("Both replicas up") == 1
    assert "Job ends" not in printed
    assert printed.count("chief-0  step 5/20  epoch 1/2  loss 1.500") == 1
