"""`trainmaster up --detach`: leaves a stack running in the background, and says how to use it.

The command is started again as a separate process, not forked: gRPC's threads do not survive a fork, and the
folder's lock, the watcher and `down` work unchanged.
"""

import contextlib
import fcntl
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.stack.console import VARIABLE, say_address
from trainmaster.cli.stack.process import (
    POLL_S,
    START_DEADLINE_S,
    StackFailed,
    start_stack,
    stop_process,
    wait_until_ready,
)
from trainmaster.cli.submit.first_commands import first_commands
from trainmaster.cli.verb import talk
from trainmaster.client.context import (
    LOCAL,
    NoContext,
    UnknownContext,
    choose_context,
    refuse_names,
    settings_folder,
)
from trainstack.find import DEFAULT_STATE, NoStack, environment_on, plain_path, register_stack
from trainstack.stack.state import StateFolder, owner_of

LOG = "stack.log"


def detach_stack(state: Path, arguments: Sequence[str], names: Sequence[str] = ()) -> int:
    """Start a stack in the background with the arguments of `up`, and return when it is ready.

    `names` are those of further deployments. Where a stack runs already, it stays as it is.

    Raises:
        NoContext: the stack that runs already does not run the deployments of these names.
        StateError: the folder cannot be used.
        Stop: the stack could not start, and the message has the end of its log; or another one has claimed the folder
            and is not ready within START_DEADLINE_S seconds.
    """
    with _wait_for_folder(state):
        environment = _running(state)
        if environment is None:
            environment = _start_and_wait(state, arguments)
        else:
            refuse_names(names, environment, state)
            talk(
                f"A stack is already running on {str(state)!r}; its options stay as they are. To change them: trainmaster down"
            )
    if address := environment.get(VARIABLE):
        say_address(address)
    click.echo(f"The local stack is running on {str(state)!r}: process {owner_of(state)}, "
               f"project {environment['GOOGLE_CLOUD_PROJECT']}, region {environment['TRAINMASTER_REGION']}.")  # fmt: skip
    beside = [(f"The deployment {name}", f"--context {LOCAL}/{name}") for name in names]
    for title, text in (*beside, *data_bucket(state, environment), *next_steps(state)):
        click.echo(f"  {title:26}{text}")
    return 0


@contextlib.contextmanager
def _wait_for_folder(state: Path) -> Iterator[None]:
    """Wait until no other `up --detach` starts a stack on the folder: this one then finds that stack, and leaves its log.

    The lock is on the folder itself. The stack's own lock is another one, which the stack takes.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # StateFolder refuses it in words
        yield
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _running(state: Path) -> dict[str, str] | None:
    """The variables of the stack that runs on the folder, once it is ready; None if none runs."""
    deadline = time.monotonic() + START_DEADLINE_S
    while owner := owner_of(state):
        with contextlib.suppress(NoStack):
            return environment_on(state)
        if time.monotonic() > deadline:
            raise Stop(
                ExitStatus.FINDING,
                f"The stack on {str(state)!r} (process {owner}) is not ready after {START_DEADLINE_S} s. "
                f"Stop it: trainmaster down{_of_state(state)}",
            )
        time.sleep(POLL_S)
    return None


def _start_and_wait(state: Path, arguments: Sequence[str]) -> dict[str, str]:
    # Refuses a folder that cannot be written, and waits for the end of a killed stack.
    StateFolder(state).close()
    log = state / LOG
    process = start_stack(state, log, arguments)
    try:
        return wait_until_ready(process, state, log)
    except StackFailed as fault:
        stop_process(process)
        raise Stop(ExitStatus.FINDING, str(fault)) from fault
    except BaseException:  # Ctrl-C
        stop_process(process)
        raise


def data_bucket(state: Path, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Where programs find data, with the folder to put it into; empty if the stack has no such bucket, or no folder."""
    bucket = environment.get("TRAINMASTER_DATA_BUCKET", "")
    folder = state / "storage" / "buckets" / bucket
    return [("Your data", f"gs://{bucket}, the folder {folder}")] if bucket and folder.is_dir() else []


def next_steps(state: Path) -> list[tuple[str, str]]:
    """What to do with the stack on `state`, which is ready: titles with commands, for the current folder."""
    of_state, in_context = _of_state(state), _in_context(state)
    first = first_commands(Path.cwd())
    first[-1] = (first[-1][0], f"{first[-1][1]}{in_context}")
    return [
        *first,
        ("List runs", f"trainmaster ls{in_context}"),
        ("Let gcloud use the stack", f'eval "$(trainmaster stack env{of_state})"'),
        ("Follow its log", f"tail -f {shlex.quote(str(state / LOG))}"),
        ("Stop it", f"trainmaster down{of_state}"),
    ]


def _of_state(state: Path) -> str:
    return "" if state == DEFAULT_STATE else f" --state {shlex.quote(str(state))}"


def _in_context(state: Path) -> str:
    """The option that chooses the stack; empty if a verb in the current folder would choose it anyway."""
    settings = settings_folder()
    with contextlib.suppress(OSError):
        register_stack(plain_path(state), settings)  # the stack does so too, a moment after it is ready
    with contextlib.suppress(NoContext, UnknownContext):
        chosen = choose_context(None, os.environ, directory=Path.cwd(), settings=settings)
        if chosen.state is not None and chosen.state.resolve() == state.resolve() and not chosen.is_elsewhere:
            return ""
    return f" --context {LOCAL}:{shlex.quote(str(state))}"
