"""The environment variables of the local stack that runs on a folder, from its `stack.env`."""

import shlex
import socket
from pathlib import Path
from urllib.parse import urlsplit

ANSWERS_WITHIN_S = 5


class NoStack(Exception):
    """No stack answers for a folder; the message says how to start one."""


def read_stack_env(text: str) -> dict[str, str]:
    """The variables of a `stack.env`: lines of `export NAME=value`, quoted for a shell."""
    words = shlex.split(text, comments=True)
    return dict(word.split("=", 1) for word in words if "=" in word)


def environment_on(state: Path) -> dict[str, str]:
    """The variables of the stack that runs on `state`.

    Raises:
        NoStack: no stack is ready there, or it was killed and left its `stack.env` behind.
    """
    start = f"trainmaster up --state {shlex.quote(str(state))}"
    try:
        environment = read_stack_env((state / "stack.env").read_text())
    except FileNotFoundError as fault:
        raise NoStack(f"No stack is ready on {str(state)!r}: {start}") from fault
    # Its logging service is always its own process; storage and Pub/Sub may be servers that run elsewhere.
    address = environment.get("LOGGING_EMULATOR_HOST", "")
    where = urlsplit(address)
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=ANSWERS_WITHIN_S).close()
    except OSError as fault:
        raise NoStack(
            f"The stack on {str(state)!r} does not answer at {address!r} any more: {start}"
        ) from fault
    return environment
