"""A stack's state folder: claimed by one stack at a time, and reused by the next. It also keeps where images come from."""

import contextlib
import fcntl
import json
import os
import shlex
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from trainstack.find import DEFAULT_STATE, PROJECT, is_claimed, plain_path
from trainstack.stack.errors import StateError

LEFTOVERS_DEADLINE_S = 20.0
STOP_DEADLINE_S = 20.0
USER_FOLDER = "user"
"""The folder that only the local user can read: an access token, and the variables that refer to it."""
_SHOWN = 3
_WATCHER_MODULE = b"trainstack.process.guard"
_POLL_S = 0.05


class StateFolder:
    """One stack's state, claimed from construction to `close`."""

    def __init__(self, path: Path) -> None:
        """Create the folder if needed and claim it. On return, processes left by a killed stack have ended.

        Raises:
            StateError: it is not writable, holds other files, or a running stack has claimed it.
        """
        self.path = plain_path(path)
        self._lock_path = self.path / "lock"
        self._watcher_pid: int | None = None
        try:
            _refuse_others_files(self.path)
            self.path.mkdir(parents=True, exist_ok=True)
            # It holds models, logs, records and tokens: no other user of the machine may read them.
            self.path.chmod(0o700)
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            is_file = isinstance(error, FileExistsError | NotADirectoryError)
            why = "a file is in the place of a folder" if is_file else error.strerror
            raise StateError(
                f"Cannot write to the state folder {str(path)!r}: {why}. Choose another with --state DIR."
            ) from error
        try:
            self._claim()
        except BaseException:
            os.close(self._lock)
            raise
        self.env_path.unlink(missing_ok=True)

    @property
    def env_path(self) -> Path:
        """`stack.env`, which exists only while a stack is ready."""
        return self.path / "stack.env"

    def folder(self, name: str) -> Path:
        """A subfolder, created if needed."""
        path = self.path / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def own(self, *, watcher_pid: int) -> None:
        """Record the owners of the folder: this process, and the watcher, which ends shortly after it."""
        self._watcher_pid = watcher_pid
        self._record_owners({"pid": os.getpid(), "watcher_pid": watcher_pid})

    def _record_owners(self, owners: Mapping[str, int]) -> None:
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(owners).encode(), 0)

    def ports(self) -> dict[str, int]:
        """The ports of the last stack, by service; empty if there was none."""
        with contextlib.suppress(OSError, ValueError):
            ports = json.loads((self.path / "ports.json").read_text())
            return {name: port for name, port in ports.items() if isinstance(port, int)}
        return {}

    def keep_ports(self, ports: Mapping[str, int]) -> None:
        """Record the ports for the next stack; those of other services stay."""
        write_whole(self.path / "ports.json", json.dumps({**self.ports(), **ports}))

    def keep_project(self, project: str, region: str) -> None:
        """Record whose data the folder holds, for `refuse_other_project`."""
        write_whole(self.path / PROJECT, json.dumps({"project": project, "region": region}))

    def announce(self, variables: Mapping[str, str]) -> None:
        """Write `stack.env` atomically: a process that sees it can use the stack."""
        write_whole(self.env_path, _exports(variables))

    def keep_client_variables(self, kind: str, variables: Mapping[str, str]) -> None:
        """Store what `trainmaster stack env` prints, in a folder that only its owner can read, because it may have a token."""
        write_whole(client_variables_path(self.path, kind), _exports(variables))

    def withdraw(self) -> None:
        """Remove `stack.env`. Safe to call twice."""
        self.env_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the folder. Safe to call twice.

        An owner removes itself from the lock: so a command that follows a run can tell a stack that was stopped from one
        that was killed.
        """
        self.withdraw()
        if self._lock >= 0:
            if self._watcher_pid is not None:
                self._record_owners({"watcher_pid": self._watcher_pid})
            os.close(self._lock)
            self._lock = -1

    def _claim(self) -> None:
        deadline = time.monotonic() + LEFTOVERS_DEADLINE_S
        while not self._lock_alone():
            # A shared lock is that of a process in `owner_of`, which waits for this very stack and releases it at once.
            if is_claimed(self.path) or time.monotonic() > deadline:
                owner = owner_of(self.path)
                raise StateError(
                    f"A stack is already running on {str(self.path)!r}"
                    f"{f' (process {owner})' if owner else ''}. "
                    f"Stop it with: trainmaster down --state {shlex.quote(str(self.path))}, "
                    "or choose another folder with --state DIR."
                )
            time.sleep(_POLL_S)
        while _is_watcher(_read_owners(self.path).get("watcher_pid", 0)):
            if time.monotonic() > deadline:
                raise StateError(
                    f"Processes of a killed stack on {str(self.path)!r} are still ending; try again."
                )
            time.sleep(_POLL_S)

    def _lock_alone(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def owner_of(path: Path) -> int | None:
    """The process id of the stack that runs on a state folder, or None."""
    return _read_owners(path).get("pid") if is_claimed(path) else None


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


def refuse_other_project(path: Path, project: str, region: str) -> None:
    """Refuse to start a stack on the data of another project or region, where its runs would be out of sight.

    Raises:
        StateError: the stack that last ran on the folder had another project or region.
    """
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        last = json.loads((path / PROJECT).read_text())
        its_project, its_region = str(last["project"]), str(last["region"])
        if (its_project, its_region) != (project, region):
            raise StateError(
                f"The state folder {str(path)!r} holds the runs of project {its_project}, region {its_region}; "
                f"found project {project}, region {region}. Start it with: trainmaster up --state "
                f"{shlex.quote(str(path))} --project {shlex.quote(its_project)} --region {shlex.quote(its_region)}, "
                "or choose another folder with --state DIR."
            )


def _refuse_others_files(path: Path) -> None:
    """Keep a stack out of a folder with files of another kind, which it would hide from other users and mix with its own.

    The folder of the default name is the stacks' own: demos keep their stacks and logs in it.

    Raises:
        StateError: it has visible files and no stack has run on it.
        OSError: it cannot be read.
    """
    if path.name == DEFAULT_STATE.name or not path.is_dir():
        return
    names = sorted(entry.name for entry in path.iterdir())
    others = [name for name in names if not name.startswith(".")]
    if others and not {"lock", "stack.env", "ports.json", PROJECT}.intersection(names):
        more = ", …" if len(others) > _SHOWN else ""
        raise StateError(
            f"The state folder {str(path)!r} holds files that are not a stack's: {', '.join(others[:_SHOWN])}{more}. "
            f"Choose an empty or a new one, for example --state {shlex.quote(str(path / DEFAULT_STATE))}."
        )


NOT_THROUGH_GATEWAY = ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST")
"""Variables that would keep clients from the gateway or its account; behind it, they act as in a local job."""


def client_variables_path(path: Path, kind: str) -> Path:
    """The file in a state folder with the variables of the user's clients, `gcloud` or `gateway`."""
    return path / USER_FOLDER / f"{kind}.env"


def write_whole(path: Path, text: str) -> None:
    """Replace a file atomically: readers see the old text or the new one."""
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    staged.write_text(text)
    staged.replace(path)


def _exports(variables: Mapping[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def _read_owners(path: Path) -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError):
        owners = json.loads((path / "lock").read_text())
        return owners if isinstance(owners, dict) else {}
    return {}


def _is_watcher(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _WATCHER_MODULE in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


MAX_IMAGES = 1000

_FILE = "images.json"


def current_images(state: Path, given: Mapping[str, Path]) -> dict[str, Path]:
    """The source trees by image URI: those that are provided now, and of the `given` ones all others."""
    return {**given, **provided_trees(state)}


def provided_trees(state: Path) -> dict[str, Path]:
    """Source trees by image URI, as `provide` stored them in a state folder.

    Raises:
        StateError: the file is damaged.
    """
    path = state / _FILE
    try:
        trees = json.loads(path.read_text(encoding="utf-8"))
        return {str(uri): Path(tree) for uri, tree in trees.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise StateError(
            f"{path} cannot be read: {error}. Remove it and provide the images again."
        ) from error


def provide(state: Path, images: Mapping[str, Path]) -> None:
    """Provide images from these source trees, starting with the next job.

    Safe to call from several processes at once.

    Raises:
        StateError: the state folder is not writable, or would have more than MAX_IMAGES.
    """
    if not images:
        return
    try:
        state.mkdir(parents=True, exist_ok=True)
        lock = os.open(state / f"{_FILE}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StateError(f"Cannot write to the state folder {str(state)!r}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trees = provided_trees(state) | {uri: tree.resolve() for uri, tree in images.items()}
        if len(trees) > MAX_IMAGES:
            raise StateError(
                f"{state / _FILE} would have more than {MAX_IMAGES} images; remove some by hand."
            )
        write_whole(state / _FILE, json.dumps({uri: str(tree) for uri, tree in trees.items()}, indent=1))
    finally:
        os.close(lock)
