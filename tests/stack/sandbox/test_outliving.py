"""A program cannot take from its init the signal that ends it with the stack's launcher, nor replace this machine's Python."""

import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.stack.waiting import wait_until
from trainstack.sandbox.limits import remove_group
from trainstack.sandbox.probe import obstacle

from .conftest import User, run_confined

pytestmark = pytest.mark.skipif(obstacle() != "", reason="this machine does not allow namespaces")

TAKES_THE_SIGNAL_AWAY = """
import ctypes, os, platform, sys, time
ATTACH, DETACH, STEP, GET, SET = 16, 17, 9, 12, 13
PRCTL, PDEATHSIG = 157, 1
RAX, RSI, RDI, ORIG_RAX, RIP = 10, 13, 14, 15, 16  # in struct user_regs_struct of x86-64
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

def inject():
    if libc.ptrace(ATTACH, 1, None, None) != 0:
        return
    os.waitpid(1, 0)
    before, changed = (ctypes.c_ulonglong * 27)(), (ctypes.c_ulonglong * 27)()
    libc.ptrace(GET, 1, None, ctypes.addressof(before))
    changed[:] = before
    changed[RAX], changed[RDI], changed[RSI] = PRCTL, PDEATHSIG, 0
    changed[ORIG_RAX] = 2**64 - 1  # do not restart the call that it was in, whose instruction of two bytes is used again
    changed[RIP] -= 2
    libc.ptrace(SET, 1, None, ctypes.addressof(changed))
    libc.ptrace(STEP, 1, None, None)
    os.waitpid(1, 0)
    before[RAX], before[ORIG_RAX] = before[ORIG_RAX], 2**64 - 1
    before[RIP] -= 2
    libc.ptrace(SET, 1, None, ctypes.addressof(before))
    libc.ptrace(DETACH, 1, None, None)

if platform.machine() == "x86_64":
    inject()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def word() -> Iterator[str]:
    """An argument by which the program is recognised; it is killed after the test in any case."""
    unique = f"outliving-{secrets.token_hex(8)}"
    yield unique
    for pid in _with(unique):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _with(word: str) -> list[int]:
    """The program's processes: those that have the word, without their parents, which have it among more."""
    return [
        each.pid for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [])[-1:] == [word]
    ]


def test_a_program_that_tampers_with_its_init_still_ends_with_its_launcher(user: User, word: str) -> None:
    with user.folder() as folder:
        runner = Path(__file__).with_name("confined.py")
        with user.start(
            str(runner), str(folder), TAKES_THE_SIGNAL_AWAY, word, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            (launcher,) = psutil.Process(process.pid).children()
            launcher.kill()
        wait_until(lambda: _with(word) == [])
        wait_until(lambda: remove_group(f"trainmaster-test-{process.pid}"))


REPLACES_PYTHON = """
import os, sys
try:
    handle = os.open("/proc/1/exe", os.O_PATH)
except OSError as error:
    sys.exit(type(error).__name__)
print(os.path.samestat(os.fstat(handle), os.stat(sys.argv[1])))
print(os.access(f"/proc/self/fd/{handle}", os.W_OK))
"""


def test_a_program_gets_no_handle_of_the_python_that_runs_its_init(user: User) -> None:
    """With one, it could wait until no process runs that file, then write to it."""
    with user.folder() as folder:
        ended = run_confined(user, folder, REPLACES_PYTHON, os.path.realpath(user.python))
    assert (ended.output, ended.errors) == ("", "PermissionError\n")
