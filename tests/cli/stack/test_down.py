"""`down` says what the stop means for the runs of the stack."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import trainmaster
from tests.ready_stack import announce

OWNER = (
    "import fcntl, os, signal, sys; fd = os.open(sys.argv[1], os.O_RDWR); fcntl.flock(fd, fcntl.LOCK_EX); "
    "print(flush=True); signal.pause()"
)


@contextmanager
def owned(state: Path) -> Iterator[None]:
    """A state folder that a process has claimed, which ends at SIGTERM as a stack does."""
    (state / "lock").touch()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(state / "lock")], stdout=subprocess.PIPE
    ) as owner:
        try:
            assert owner.stdout is not None
            owner.stdout.readline()
            announce(state, {"TRAINMASTER_LEDGER_BUCKET": "p-ledger"}, owner=owner.pid)
            yield
        finally:
            owner.kill()


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], ""),
        (
            ["house-20260302t081500-3f9a1c04de"],
            "1 run has not ended. It starts again at the next: trainmaster up --detach\n",
        ),
        (
            ["house-20260302t081500-3f9a1c04de", "b-20260302t081500-3f9a1c04de", ".unfinished"],
            "2 runs have not ended. They start again at the next: trainmaster up --detach\n",
        ),
    ],
)
def test_the_runs_that_have_not_ended_are_counted(runs: list[str], said: str, tmp_path: Path) -> None:
    state = tmp_path / ".trainmaster"
    active = state / "storage" / "buckets" / "p-ledger" / "active"
    active.mkdir(parents=True)
    (active.parent / "runs").mkdir()
    for run in runs:
        (active / run).touch()
        (active.parent / "runs" / f"{run}.json").write_text('{"state": "running"}')
    ended = "cancelled-20260302t081500-3f9a1c04de"  # its marker is removed in a moment
    (active / ended).touch()
    (active.parent / "runs" / f"{ended}.json").write_text('{"state": "cancelled"}')
    with owned(state):
        done = trainmaster("down", cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert (done.status, done.out, done.err) == (0, "The stack on '.trainmaster' has stopped.\n", said)
