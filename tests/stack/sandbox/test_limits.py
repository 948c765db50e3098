"""The share of this machine that a program takes is bounded where the user of the stack may set bounds."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainstack.sandbox.limits import ControlGroup, remove_group
from trainstack.sandbox.probe import obstacle

from .conftest import User, run_confined

pytestmark = pytest.mark.skipif(obstacle() != "", reason="this machine does not allow namespaces")

GO = """
import os, sys, time
print("started", flush=True)
while not os.path.exists("/gcs/bucket/go"):
    time.sleep(0.01)
"""
FORKS = """
pids = []
try:
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
        pids.append(pid)
except BlockingIOError:
    print(len(pids))
"""
HOARDS = "kept = [bytearray(os.urandom(1 << 20)) for _ in range(400)]"


def folders_of(name: str) -> list[Path]:
    """Of the control groups with this name. Other groups come and go meanwhile: `walk` passes over them."""
    folders = os.walk("/sys/fs/cgroup")
    return [Path(parent) / name for parent, children, _ in folders if name in children]


@pytest.fixture
def own() -> User:
    """The user of the tests, who may make control groups."""
    name = f"trainmaster-test-{os.getpid()}-probe"
    ControlGroup(name)
    controllers = {file.name for folder in folders_of(name) for file in folder.iterdir()}
    assert remove_group(name)
    if not {"pids.max"} < controllers:
        pytest.skip("this user may not make control groups")
    return User(uid=None, python=sys.executable)


@contextlib.contextmanager
def bounded(
    user: User, folder: Path, program: str, bounds: dict[str, int]
) -> Iterator["subprocess.Popen[str]"]:
    """A program that starts when its group has these bounds, in place of the generous ones."""
    with user.start(
        str(Path(__file__).with_name("confined.py")), str(folder), GO + program, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        lowered = set()
        for path in folders_of(f"trainmaster-test-{process.pid}"):
            for name, most in bounds.items():
                if (path / name).exists():
                    assert most < int((path / name).read_text())
                    (path / name).write_text(f"{most}")
                    lowered.add(name)
        assert lowered
        (folder / "buckets" / "bucket" / "go").touch()
        yield process
    assert folders_of(f"trainmaster-test-{process.pid}") == []


def test_a_fork_bomb_ends_at_the_bound_of_its_group(own: User) -> None:
    with own.folder() as folder, bounded(own, folder, FORKS, {"pids.max": 20}) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) < 20
    assert process.returncode == 0


def test_a_program_that_hoards_memory_is_killed_and_nothing_else_is(own: User) -> None:
    bounds = {"memory.max": 128 << 20, "memory.limit_in_bytes": 128 << 20}
    with own.folder() as folder, bounded(own, folder, HOARDS, bounds) as process:
        process.wait(120)
    assert process.returncode == 128 + signal.SIGKILL


SEEN = """
import json, os, resource
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1")
except OSError:
    pass
with open("/proc/self/oom_score_adj") as file:
    print(json.dumps([int(file.read()), *resource.getrlimit(resource.RLIMIT_NPROC)]))
"""


def test_a_programs_processes_are_limited_and_the_kernel_ends_them_before_the_stack(user: User) -> None:
    with user.folder() as folder:
        score, soft, hard = json.loads(run_confined(user, folder, SEEN).output)
    assert score == 500
    assert 0 < soft <= hard <= 256 * max(16, os.cpu_count() or 1)
