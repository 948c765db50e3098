"""The local stack as another process: for `up --detach`, which leaves it running, and for the demos, which stop it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from trainmaster.resources import IMPORTED_FROM
from trainstack.find import read_stack_env
from trainstack.stack.state import owner_of

START_DEADLINE_S = 90
STOP_DEADLINE_S = 60
TAIL_LINES = 20
_TAIL_BYTES = 16 * 1024
POLL_S = 0.05
_RUN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from trainmaster.cli.command import main; sys.exit(main(sys.argv[1:]))"
)
"""The command, with this package first on the import path and without the current folder (-P)."""


def command_line(*words: str) -> list[str]:
    """What runs this `trainmaster` with these words, in any folder and environment."""
    return [sys.executable, "-P", "-c", _RUN, str(IMPORTED_FROM), *words]


class StackFailed(Exception):
    """The stack ended, or was not ready in time; the message holds the end of its output."""


def start_stack(state: Path, log: Path, arguments: Sequence[str] = ()) -> "subprocess.Popen[bytes]":
    """`trainmaster up` with these arguments in the current folder, with its output in `log`.

    It has a separate session, so neither Ctrl-C nor the end of the terminal reaches it.
    """
    words = ["up", "--state", str(state.absolute()), *arguments]
    command = command_line(*words)
    log.unlink(missing_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )


def wait_until_ready(process: "subprocess.Popen[bytes]", state: Path, log: Path) -> dict[str, str]:
    """The variables of the stack that the process runs on `state`, once it is ready.

    Raises:
        StackFailed: it ended by itself, or was not ready within START_DEADLINE_S seconds.
    """
    deadline = time.monotonic() + START_DEADLINE_S
    env_file = state / "stack.env"
    # A killed stack leaves its `stack.env` behind; the next one removes it before it notes its process.
    while owner_of(state) != process.pid or not env_file.exists():
        if process.poll() is not None:
            raise StackFailed(f"The local stack exited with status {process.returncode}.\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise StackFailed(f"The local stack was not ready after {START_DEADLINE_S} s.\n{_tail(log)}")
        time.sleep(POLL_S)
    return read_stack_env(env_file.read_text())


def stop_process(process: "subprocess.Popen[bytes]") -> None:
    """Stop the stack, and return when it has ended. Safe to call twice."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()  # the stack's guard ends whatever it had started
            process.wait()


@contextmanager
def local_stack(state: Path, log: Path, arguments: Sequence[str] = ()) -> Iterator[Mapping[str, str]]:
    """The variables of a stack on `state`, once it is ready; it is stopped at the end, whatever happens.

    Raises:
        StackFailed: as `wait_until_ready`.
    """
    process = start_stack(state, log, arguments)
    try:
        yield wait_until_ready(process, state, log)
    finally:
        stop_process(process)


def _tail(log: Path) -> str:
    with log.open("rb") as opened:
        opened.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = opened.read(_TAIL_BYTES).decode(errors="replace")
    return os.linesep.join(["The end of its output:", *text.splitlines()[-TAIL_LINES:], f"All of it: {log}"])
