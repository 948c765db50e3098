"""The local stack as a child process: started, waited for, always stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainmaster.client.stack import read_stack_env
from trainmaster.resources import IMPORTED_FROM

START_DEADLINE_S = 90
STOP_DEADLINE_S = 60
TAIL_LINES = 20


class StackFailed(Exception):
    """The stack ended, or was not ready in time; the message holds the end of its output."""


@contextmanager
def local_stack(state: Path, log: Path, arguments: tuple[str, ...] = ()) -> Iterator[Mapping[str, str]]:
    """The variables of a stack on `state`, once it is ready; it is stopped at the end, whatever happens.

    Its output goes to `log`. It runs in a separate session, so that Ctrl-C in the
    terminal reaches only this process, which then stops it in order.

    Raises:
        StackFailed: it ended by itself, or was not ready within START_DEADLINE_S seconds.
    """
    command = [sys.executable, "-m", "trainmaster", "up", "--state", str(state.absolute()), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=IMPORTED_FROM,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield _when_ready(process, state / "stack.env", log)
        finally:
            _stop(process)


def _when_ready(process: "subprocess.Popen[bytes]", env_file: Path, log: Path) -> dict[str, str]:
    deadline = time.monotonic() + START_DEADLINE_S
    while not env_file.exists():
        if process.poll() is not None:
            raise StackFailed(f"The local stack exited with status {process.returncode}.\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise StackFailed(f"The local stack was not ready after {START_DEADLINE_S} s.\n{_tail(log)}")
        time.sleep(0.05)
    return read_stack_env(env_file.read_text())


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()  # the stack's guard ends whatever it had started
            process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return os.linesep.join(["The end of its output:", *lines, f"All of it: {log}"])
