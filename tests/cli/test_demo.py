"""The demo touches only its own folder, ends with the first command that fails, and reports what did not hold."""

import fcntl
import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from tests.command import trainmaster
from trainmaster.cli.demo.plays import broken_claims
from trainmaster.cli.demo.stage import DemoFailed, DemoStage, make_fresh
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_in_cloud
from trainmaster.orchestrator.core.champions.champion import Verdict


def test_a_folder_that_no_demo_made_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(DemoFailed, match="contains something other"):
        make_fresh(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_the_light_demo_takes_no_name(tmp_path: Path) -> None:
    done = trainmaster("demo", "tuning", "--light", cwd=tmp_path, environment={})
    assert done.status == 2
    assert "leave out 'tuning' or --light" in done.err


def test_the_last_demo_is_cleared_away(tmp_path: Path) -> None:
    state = tmp_path / "state"
    make_fresh(state)
    (state / "old").touch()
    make_fresh(state)
    assert not (state / "old").exists()


def test_a_demo_that_runs_keeps_its_folder(tmp_path: Path) -> None:
    state = tmp_path / "state"
    make_fresh(state)
    (state / "work").touch()
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a stack holds it
        lock.write(f'{{"pid": {os.getpid()}}}')
        lock.flush()
        with pytest.raises(DemoFailed, match="A demo is already running"):
            make_fresh(state)
    assert (state / "work").exists()


def test_a_verb_that_fails_ends_the_demo_and_is_named(tmp_path: Path) -> None:
    out = io.StringIO()
    clients = Clients(context_in_cloud("some-project", "us-central1"))
    stage = DemoStage(console=Console(file=out, width=80), state=tmp_path, clients=clients)
    with pytest.raises(DemoFailed, match=r"`trainmaster context show --no-such-option` ended with status 2"):
        stage.run_verb("context", "show", "--no-such-option")
    assert "$ trainmaster context show --no-such-option" in out.getvalue()


RUNS = ["first", "good", "bad"]


def verdicts(*promoted: bool) -> list[Verdict]:
    return [
        Verdict(run_id=run_id, promoted=each, reason="why", at=datetime(2026, 1, 1, tzinfo=UTC))
        for run_id, each in zip(RUNS, promoted, strict=True)
    ]


def test_a_retraining_as_it_should_be_breaks_no_claim() -> None:
    assert list(broken_claims(RUNS, RUNS, verdicts(True, True, False))) == []


@pytest.mark.parametrize(
    ("listed", "considered", "said"),
    [
        ([*RUNS, "again"], verdicts(True, True, False), "the runs are: first, good, bad, again"),
        (
            RUNS,
            verdicts(True, True, True),
            "the third not; the verdicts are: first: why; good: why; bad: why",
        ),
    ],
)
def test_every_claim_of_the_retraining_that_does_not_hold_is_reported(
    listed: list[str], considered: list[Verdict], said: str
) -> None:
    (problem,) = broken_claims(RUNS, listed, considered)
    assert said in problem
