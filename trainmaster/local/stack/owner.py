"""Stops the stack that has claimed a state folder, from another process."""

import contextlib
import os
import signal
import time
from pathlib import Path

from trainmaster.local.stack.errors import StateError
from trainmaster.local.stack.state import owner_of

STOP_DEADLINE_S = 20.0
_POLL_S = 0.05


def stop_stack(state: Path) -> bool:
    """Stop the stack of a state folder, and return when it has ended; False if none runs.

    Raises:
        StateError: it still runs after STOP_DEADLINE_S.
    """
    owner = owner_of(state)
    if owner is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(owner, signal.SIGTERM)
    deadline = time.monotonic() + STOP_DEADLINE_S
    while owner_of(state) is not None:
        if time.monotonic() > deadline:
            raise StateError(f"The stack (process {owner}) did not stop within {STOP_DEADLINE_S:.0f} s.")
        time.sleep(_POLL_S)
    return True
