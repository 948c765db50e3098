"""Nothing that a stack started outlives it, however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.waiting import wait_until

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "family_of_stubborn_children.py")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


def pids_of(parent: "subprocess.Popen[str]") -> list[int]:
    """The tree that it started, which it prints."""
    assert parent.stdout is not None
    return [int(word) for word in parent.stdout.readline().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_any_signal_that_ends_the_parent_ends_its_tree_and_the_watcher(
    parent: "subprocess.Popen[str]", number: int
) -> None:
    pids = pids_of(parent)
    assert len(pids) == 7
    assert all(lives(pid) for pid in pids)
    parent.send_signal(number)
    assert parent.wait(60) != 0
    wait_until(lambda: not any(lives(pid) for pid in pids), f"all of {pids} end")


def test_ctrl_c_in_the_terminal_reaches_the_watcher_and_does_not_end_it(
    parent: "subprocess.Popen[str]",
) -> None:
    pids = pids_of(parent)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(pids[-1], number)
    parent.kill()
    wait_until(lambda: not any(lives(pid) for pid in pids), f"all of {pids} end")
