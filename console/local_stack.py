"""The local stack as a child process: started, waited for, always stopped."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

START_DEADLINE_S = 90
STOP_DEADLINE_S = 60
ANSWERS_WITHIN_S = 5
TAIL_LINES = 20


class StackFailed(Exception):
    """The stack ended, or was not ready in time; the message holds the end of its output."""


class NoStack(Exception):
    """No stack answers on a folder; the message says how to start one."""


def read_stack_env(text: str) -> dict[str, str]:
    """The variables of a `stack.env`: lines of `export NAME=value`, quoted as a shell reads them."""
    assignments = (line.removeprefix("export ") for line in shlex_lines(text))
    return dict(assignment.split("=", 1) for assignment in assignments if "=" in assignment)


def shlex_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield " ".join(words)


def environment_on(state: Path) -> dict[str, str]:
    """The variables of the stack that runs on `state`.

    Raises:
        NoStack: none is ready there, or it was killed and has left its `stack.env` behind.
    """
    start = f"python -m emulators up --state {shlex.quote(str(state))}"
    try:
        environment = read_stack_env((state / "stack.env").read_text())
    except FileNotFoundError as fault:
        raise NoStack(f"No stack is ready on {str(state)!r}: {start}") from fault
    # Its logging is always its own; storage and Pub/Sub may be servers that run elsewhere.
    address = environment.get("LOGGING_EMULATOR_HOST", "")
    where = urlsplit(address)
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=ANSWERS_WITHIN_S).close()
    except OSError as fault:
        raise NoStack(
            f"The stack on {str(state)!r} does not answer at {address!r} any more: {start}"
        ) from fault
    return environment


@contextmanager
def local_stack(state: Path, log: Path, arguments: tuple[str, ...] = ()) -> Iterator[Mapping[str, str]]:
    """The variables of a stack on `state`, once it is ready; it is stopped at the end, whatever happens.

    Its output goes to `log`. It runs in a session of its own, so that Ctrl-C in the
    terminal reaches this process alone, which then stops it in order.

    Raises:
        StackFailed: it ended by itself, or was not ready within START_DEADLINE_S seconds.
    """
    command = [sys.executable, "-m", "emulators", "up", "--state", str(state), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield _when_ready(process, state / "stack.env", log)
        finally:
            _stop(process)


def _when_ready(process: "subprocess.Popen[bytes]", env_file: Path, log: Path) -> dict[str, str]:
    deadline = time.monotonic() + START_DEADLINE_S
    while not env_file.exists():
        if process.poll() is not None:
            raise StackFailed(f"The local stack ended with status {process.returncode}.\n{_tail(log)}")
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
