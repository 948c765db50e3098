"""The local stacks that run on this machine, and the environment variables of each, from its `stack.env`."""

import hashlib
import json
import os
import shlex
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trainstack.loopback import own_hosts as own_hosts  # noqa: PLC0414 - for the console

DEFAULT_STATE = Path(".trainmaster")
PROJECT = "project.json"
"""Names the project and the region of a state folder's data, once a stack has run on it."""
ANSWERS_WITHIN_S = 5
STACKS_MAX = 100
LOCK_MAX_BYTES = 4096


class NoStack(Exception):
    """No stack answers for a folder; the message says how to start one."""


def plain_path(path: Path) -> Path:
    """The path, absolute and without `..`; symbolic links stay where they can."""
    plain = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps `..`
    return plain if plain.resolve() == path.resolve() else path.resolve()


def read_stack_env(text: str) -> dict[str, str]:
    """The variables of a `stack.env`: lines of `export NAME=value`, quoted for a shell."""
    words = shlex.split(text, comments=True)
    return dict(word.split("=", 1) for word in words if "=" in word)


def start_command(state: Path) -> str:
    """The command that starts a stack on `state`, for the current folder."""
    is_default = state == DEFAULT_STATE or state == Path.cwd() / DEFAULT_STATE
    words = ["trainmaster", "up", "--detach", *([] if is_default else ["--state", str(state)])]
    return shlex.join(words)


def environment_on(state: Path) -> dict[str, str]:
    """The variables of the stack that runs on `state`: its process is alive, and it answers.

    Its process is the one in the folder's `lock`: another stack may answer at the address of one that was killed.

    Raises:
        NoStack: no stack is ready there, the stack was stopped, or it was killed and left its `stack.env` behind.
    """
    start = start_command(state)
    try:
        environment = read_stack_env((state / "stack.env").read_text())
    except OSError as fault:
        if is_between(state):
            raise NoStack(between_text(state)) from fault
        if is_state(state) and was_stopped(state):
            raise NoStack(f"The stack on {str(state)!r} was stopped. Start it again: {start}") from fault
        raise NoStack(f"No stack is ready on {str(state)!r}. Start one: {start}") from fault
    if not _owner_is_alive(state):
        raise NoStack(f"The stack on {str(state)!r} was killed. Start it again: {start}")
    # Its logging service is always its own process; storage and Pub/Sub may be servers that run elsewhere.
    address = environment.get("LOGGING_EMULATOR_HOST", "")
    if not is_open(address):
        raise NoStack(
            f"The stack on {str(state)!r} no longer answers at {address!r}. Start it again: {start}"
        )
    return environment


def is_claimed(state: Path) -> bool:
    """Whether a process holds the folder's lock alone, as a stack does."""
    try:
        import fcntl
    except ImportError:  # no stack runs there
        return False
    try:
        with (state / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def is_between(state: Path) -> bool:
    """Whether a stack is starting on the folder, and not ready yet, or is stopping."""
    return is_claimed(state) and not (state / "stack.env").exists()


def between_text(state: Path) -> str:
    """The sentence about a stack for which `is_between` holds."""
    return f"The stack on {str(state)!r} is starting or stopping. Run this command again in a moment."


def was_stopped(state: Path) -> bool:
    """Whether the last stack on the folder was stopped and no other has started since. One that was killed was not stopped.

    A stack that stops removes itself from its lock. A stack that starts after another was killed removes the old `stack.env` before
    it is ready, so that a missing `stack.env` alone says nothing.
    """
    try:
        return not (state / "stack.env").exists() and "pid" not in _owners(state)
    except FileNotFoundError:
        return True  # with its folder
    except (
        OSError,
        ValueError,
        TypeError,
    ):  # an empty lock is that of a stack that starts for the first time
        return False


def _owners(state: Path) -> dict[str, Any]:  # Any: of JSON
    with (state / "lock").open("rb") as lock:
        owners: dict[str, Any] = json.loads(lock.read(LOCK_MAX_BYTES))
        return owners


def is_open(address: str) -> bool:
    """Whether something accepts connections at an address such as `http://127.0.0.1:4711`, within ANSWERS_WITHIN_S."""
    try:
        where = urlsplit(address)
        socket.create_connection((where.hostname or "", where.port or 0), timeout=ANSWERS_WITHIN_S).close()
    except (OSError, ValueError):
        return False
    return True


def _owner_is_alive(state: Path) -> bool:
    """By the process id, which can be read on every platform; only the stack's machine can test the lock itself."""
    try:
        os.kill(int(_owners(state)["pid"]), 0)
    except PermissionError:  # another user's
        return True
    except (OSError, OverflowError, ValueError, TypeError, KeyError):
        return False
    return True


def is_state(folder: Path) -> bool:
    """Whether a stack has run on the folder, or is starting on it: it has a stack's files, whatever its name."""
    if not (folder / "lock").is_file():
        return False
    return any((folder / name).is_file() for name in (PROJECT, "stack.env", "ports.json"))


def nearest_state(directory: Path) -> Path | None:
    """The `.trainmaster` on which a stack runs or has run: this directory's, relative, else the nearest parent's.

    A parent's folder is used only if this user owns it, because a shell evaluates the variables in it. None if there is
    no such folder.
    """
    if is_state(directory / DEFAULT_STATE):
        return DEFAULT_STATE
    above = (folder / DEFAULT_STATE for folder in directory.parents)
    return next((candidate for candidate in above if is_state(candidate) and _is_own(candidate)), None)


def state_of(directory: Path, settings: Path) -> Path:
    """The state folder that commands in the directory use: the nearest, else that of the only stack that runs there.

    Without either it is `.trainmaster`. `settings` is the user's folder of settings, where stacks are registered.
    """
    if nearest := nearest_state(directory):
        return nearest
    running = [state for state in running_stacks(directory, settings) if is_of(state, directory)]
    return running[0] if len(running) == 1 and _is_own(running[0]) else DEFAULT_STATE


def _is_own(state: Path) -> bool:
    try:
        return not hasattr(os, "getuid") or state.stat().st_uid == os.getuid()
    except OSError:
        return False


def folder_of(state: Path) -> Path:
    """The folder whose stack runs on `state`: the one with `.trainmaster` in it, else the one with `state` in it."""
    below = next((path for path in (state, *state.parents) if path.name == DEFAULT_STATE.name), state)
    return below.parent


def is_of(state: Path, directory: Path) -> bool:
    """Whether the stack on `state` is the directory's own, or that of one of its parents."""
    return directory.resolve().is_relative_to(folder_of(state).resolve())


def started_at(state: Path) -> datetime | None:
    """When the stack that runs on `state` became ready, with a time zone; None if none is ready there."""
    try:
        return datetime.fromtimestamp((state / "stack.env").stat().st_mtime, UTC)
    except OSError:
        return None


def running_stacks(directory: Path, settings: Path) -> list[Path]:
    """The state folders of the stacks that are ready: those of the nearest folder that has any, else all that are known.

    A folder's stacks are in its `.trainmaster` or below that; without one there, those with a state folder of another
    name in the folder. `is_of` tells whether those that are returned are the directory's own.

    Args:
        directory: searched first, then its parents.
        settings: the user's folder of settings, where stacks are registered.
    """
    known = _known_states(settings)
    for folder in (directory, *directory.parents):
        here = [state for state in known if folder_of(state).resolve() == folder.resolve()]
        if ready := _find_ready(folder / DEFAULT_STATE) or _ready(here):
            return ready
    return _ready(known)


def _find_ready(state: Path) -> list[Path]:
    return _ready(file.parent for file in (state / "stack.env", *sorted(state.glob("*/stack.env"))))


def _ready(states: Iterable[Path]) -> list[Path]:
    return [state for state in states if _is_ready(state)]


def stopped_stack(directory: Path) -> Path | None:
    """The state folder of this directory, else of the nearest parent that has one, if no stack runs on it or below it."""
    for folder in (directory, *directory.parents):
        state = folder / DEFAULT_STATE
        if _find_ready(state):
            return None
        if (state / PROJECT).is_file():
            return state
    return None


def stack_between(directory: Path) -> Path | None:
    """The `.trainmaster` of this directory or of the nearest parent on which a stack is starting or stopping."""
    folders = (directory, *directory.parents)
    return next((folder / DEFAULT_STATE for folder in folders if is_between(folder / DEFAULT_STATE)), None)


def own_state(directory: Path, settings: Path) -> Path | None:
    """The state folder of this directory's stack, running or stopped, else of the nearest parent's; None without one.

    No stack is asked. `settings` is the user's folder of settings, where running stacks are registered.
    """
    known = _known_states(settings)
    for folder in (directory, *directory.parents):
        state = folder / DEFAULT_STATE
        registered = (path for path in known if folder_of(path).resolve() == folder.resolve())
        for candidate in (state, *sorted(state.glob("*")), *registered):
            if (candidate / PROJECT).is_file() or (candidate / "stack.env").is_file():
                return candidate
    return None


def _known_states(settings: Path) -> list[Path]:
    try:
        entries = sorted((settings / "stacks").glob("*"))[:STACKS_MAX]
    except OSError:  # a folder that may not be read, or a name that is too long, has no stacks
        return []
    return sorted({state for entry in entries if (state := _registered_state(entry)) is not None})


def _is_ready(state: Path) -> bool:
    with suppress(NoStack, OSError):
        environment_on(state)
        return True
    return False


def _registered_state(file: Path) -> Path | None:
    try:
        with file.open(encoding="utf-8") as opened:
            return Path(opened.read(4096).strip())
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def registered_stack(state: Path, settings: Path) -> Iterator[None]:
    """Let commands in other folders find the stack on `state`, which is ready, while the block runs.

    If the settings cannot be written, no error is raised: commands in the folder of the stack still find it.
    """
    file: Path | None = None
    try:
        with suppress(OSError):
            file = register_stack(state, settings)
        yield
    finally:
        with suppress(OSError):
            if file is not None:
                file.unlink(missing_ok=True)


def register_stack(state: Path, settings: Path) -> Path:
    """Put the stack on the list of stacks. Returns the file to remove when the stack stops.

    Stacks that have ended without removing themselves are removed.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = settings / "stacks"
    folder.mkdir(parents=True, exist_ok=True)
    for entry in sorted(folder.glob("*"))[:STACKS_MAX]:
        registered = _registered_state(entry)
        if registered is None or not (registered / "stack.env").exists():
            entry.unlink(missing_ok=True)
    file = folder / hashlib.sha256(bytes(state)).hexdigest()[:20]
    file.write_text(f"{state}\n", encoding="utf-8")
    return file
