"""The files of a state folder whose stack is ready, without the stack: this process is its owner."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def announce(state: Path, variables: Mapping[str, str], *, owner: int | None = None) -> Path:
    """Write the `stack.env` and the `lock` of an existing folder. Returns the `stack.env`."""
    owned = {"pid": os.getpid() if owner is None else owner, "watcher_pid": 0}
    (state / "lock").write_text(json.dumps(owned))
    env_file = state / "stack.env"
    env_file.write_text("".join(f"export {name}={value}\n" for name, value in variables.items()))
    return env_file
