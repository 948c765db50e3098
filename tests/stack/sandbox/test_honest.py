"""Usual training programs work in a confinement, as root or as another user."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from trainstack.sandbox.probe import obstacle

from .conftest import User, run_confined

pytestmark = pytest.mark.skipif(obstacle() != "", reason="this machine does not allow namespaces")

PROGRAM = """
import ctypes, json, multiprocessing, os, pathlib, signal, socket, subprocess, tempfile, threading
from multiprocessing import shared_memory

def squares():
    with multiprocessing.Pool(2) as pool:
        return pool.map(abs, [-1, -2])

def threads():
    done = []
    started = [threading.Thread(target=done.append, args=(number,)) for number in range(8)]
    [each.start() for each in started]
    [each.join() for each in started]
    return len(done)

def memory():
    first = shared_memory.SharedMemory(create=True, size=1 << 20)
    second = shared_memory.SharedMemory(first.name)
    first.buf[0] = 7
    found = second.buf[0]
    second.close(); first.close(); first.unlink()
    return found

def listens(port):
    with socket.create_server(("127.0.0.1", port)) as server:
        with socket.create_connection(server.getsockname()):
            return True

def traces_its_child():
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        attached = libc.ptrace(16, pid, None, None)
        os.waitpid(pid, 0)
        return attached
    finally:
        os.kill(pid, signal.SIGKILL)

def device(name, data):
    with open(f"/dev/{name}", "r+b", buffering=0) as file:
        return [file.write(data), len(file.read(4))]

def in_a_bucket():
    path = pathlib.Path("/gcs/bucket/folder")
    path.mkdir()
    (path / "model").write_text("weights")
    (path / "model").chmod(0o755)
    os.chown(path / "model", os.getuid(), os.getgid())
    (path / "model").rename(path / "moved")
    return (path / "moved").read_text()

def names_a_thread():
    pathlib.Path("/proc/self/comm").write_text("trainer")
    return pathlib.Path("/proc/self/comm").read_text().strip()

outcomes = {
    "processes": squares(),
    "threads": threads(),
    "shared memory": memory(),
    "ports": [listens(0), listens(80)],
    "shell": subprocess.run("echo $((1 + 1)) | cat", shell=True, capture_output=True, text=True).stdout,
    "trace": traces_its_child(),
    "devices": [device("null", b"x"), device("zero", b"x"), len(os.urandom(4))],
    "bucket": in_a_bucket(),
    "terminal": os.ttyname(os.openpty()[1]),
    "temporary": len(tempfile.NamedTemporaryFile().name) > 4,
    "name": names_a_thread(),
    "processors": len(os.sched_getaffinity(0)) > 0 and "processor" in pathlib.Path("/proc/cpuinfo").read_text(),
    "parent": pathlib.Path("/proc/1/stat").read_text().split()[0],
}
if os.getuid() == 0:
    path = pathlib.Path("/gcs/bucket/others")
    path.write_text("")
    os.chown(path, 1000, 1000)
    path.chmod(0o600)
    path.write_text("owned")
    pid = os.fork()
    if pid == 0:
        os.setgroups([]); os.setgid(1000); os.setuid(1000)
        os._exit(len(path.read_text()))
    outcomes["other users"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps(outcomes))
"""

EXPECTED: dict[str, object] = {
    "processes": [1, 2],
    "threads": 8,
    "shared memory": 7,
    "ports": [True, True],
    "shell": "2\n",
    "trace": 0,
    "devices": [[1, 0], [1, 4], 4],
    "bucket": "weights",
    "terminal": "/dev/pts/0",
    "temporary": True,
    "name": "trainer",
    "processors": True,
    "parent": "1",
}


@pytest.fixture(scope="module")
def outcomes(user: User) -> Iterator[dict[str, Any]]:
    with user.folder() as folder:
        ended = run_confined(user, folder, PROGRAM)
        assert ended.status == 0, ended
        yield json.loads(ended.output)


@pytest.mark.parametrize("what", EXPECTED)
def test_a_program_may_use_what_training_needs(outcomes: dict[str, Any], what: str) -> None:
    assert outcomes[what] == EXPECTED[what]


@pytest.mark.skipif(os.getuid() != 0, reason="only a program of root's has several users")
def test_a_program_of_roots_may_use_files_of_other_users_and_become_one(outcomes: dict[str, Any]) -> None:
    assert outcomes.get("other users", 5) == 5
