"""No process that a replica starts outlives its job or the stack, whatever it does to get away."""

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.stack.waiting import wait_until

from .conftest import WAYS, Stack, Way, container, processes_with, stand_alone, way_of

pytestmark = pytest.mark.slow

ESCAPE = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        os.execve("/bin/sleep", ["sleep", sys.argv[1].removeprefix("for=")], {})
    os._exit(0)
os.wait()
until = pathlib.Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), "b", "go")
while not until.exists():
    time.sleep(0.01)
"""
"""Starts `sleep SECONDS` with a double fork, in a new session and without any environment; exits on request."""


@pytest.fixture
def seconds() -> Iterator[str]:
    """The argument by which the escaped process is recognised; it is killed after the test in any case."""
    unique = f"86400.{secrets.randbelow(10**9)}"
    yield unique
    for pid in processes_with(unique):
        os.kill(pid, signal.SIGKILL)


def escaped(stack: Stack, seconds: str) -> str:
    """The name of a job whose process has got away from its parent."""
    job = stack.submit(container("-c", ESCAPE, f"for={seconds}", command=["python"]))
    wait_until(lambda: len(processes_with(seconds)) == 1, "the process has got away")
    return job.name


@pytest.mark.parametrize(
    ("way", "end"),
    [*((way, "SUCCEEDED") for way in WAYS), (WAYS[0], "CANCELLED")],
    ids=lambda each: way_of(each) if isinstance(each, dict) else each,
)
def test_an_escaped_process_ends_with_its_job(
    start: Callable[..., Any], way: Way, end: str, seconds: str
) -> None:
    with start(**way, grace_s=0.2) as stack:
        name = escaped(stack, seconds)
        if end == "CANCELLED":
            stack.jobs.cancel_custom_job(name=name)
        else:
            (stack.buckets / "b").mkdir()
            (stack.buckets / "b" / "go").touch()
        assert stack.ended(name).state.name == f"JOB_STATE_{end}"
        assert processes_with(seconds) == []


@pytest.mark.parametrize("way", WAYS, ids=way_of)
def test_an_escaped_process_ends_with_the_stack(start: Callable[..., Any], way: Way, seconds: str) -> None:
    with start(**way, grace_s=0.2) as stack:
        name = escaped(stack, seconds)
    assert processes_with(seconds) == []
    assert list(Path("/sys/fs/cgroup").rglob(f"trainmaster-{name.rpartition('/')[2]}-*")) == []


@pytest.mark.parametrize(
    ("way", "is_watched"),
    [*((way, False) for way in WAYS), (WAYS[-1], True)],
    ids=[*map(way_of, WAYS), "watched"],
)
def test_an_escaped_process_ends_with_a_killed_stack_even_without_its_watcher(
    tmp_path: Path, way: Way, seconds: str, *, is_watched: bool
) -> None:
    with stand_alone(tmp_path, **way) as (
        process,
        stack,
    ):
        escaped(stack, seconds)
        if not is_watched:
            _kill_watcher(process.pid)
        process.kill()
        process.wait(60)
    wait_until(lambda: processes_with(seconds) == [], "the process has ended")


def _kill_watcher(stack: int) -> None:
    (watcher,) = [
        each for each in psutil.Process(stack).children() if "trainstack.process.guard" in each.cmdline()
    ]
    watcher.kill()
