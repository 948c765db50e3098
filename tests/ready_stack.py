"""The files of a state folder whose stack is ready, without the stack: this process is its owner."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path


def announce(state: Path, variables: Mapping[str, str], *, owner: int | None = None) -> Path:
    """Write the `stack.env` and the `lock` of an existing folder. Returns the `stack.env`."""
    owned = {"pid": os.getpid() if owner is None else owner, "watcher_pid": 0}
    (state / "lock").write_text(json.dumps(owned))
    env_file = state / "stack.env"
    env_file.write_text("".join(f"export {name}={value}\n" for name, value in variables.items()))
    return env_file


def stop(state: Path) -> None:
    """Leave the files that `trainmaster down` leaves of an announced stack."""
    (state / "project.json").write_text("{}")
    (state / "stack.env").unlink()
    (state / "lock").write_text(json.dumps({"watcher_pid": 0}))


@contextlib.contextmanager
def stack_on(state: Path, project: str = "local-project") -> Iterator[Path]:
    """A new folder whose stack seems to run: a socket listens at the address in its `stack.env`."""
    state.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        variables = {
            "GOOGLE_CLOUD_PROJECT": project,
            "TRAINMASTER_REGION": "us-central1",
            "TRAINMASTER_DEPLOYMENTS": "stage",
            "LOGGING_EMULATOR_HOST": f"http://127.0.0.1:{server.getsockname()[1]}",
            **{
                f"TRAINMASTER_{role}_BUCKET": role.lower()
                for role in ("INBOX", "LEDGER", "MODELS", "CHAMPIONS", "DATA")
            },
        }
        announce(state, variables)
        yield state
