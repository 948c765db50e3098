"""`trainmaster down`: stops the local stack."""

import json
import shlex
from pathlib import Path

import click

from trainmaster.cli.stack.options import nearest_state_option
from trainmaster.cli.verb import talk
from trainmaster.client.context import settings_folder
from trainmaster.orchestrator.core.names import ACTIVE_PREFIX, is_run_id, record_object
from trainmaster.orchestrator.core.runs.states import ENDS
from trainstack.find import is_of, read_stack_env, running_stacks, start_command, started_at


@click.command()
@nearest_state_option
def down(state: Path) -> int:
    """Stop the local stack that runs on a state folder. The folder stays, and the next start continues from it.

    Runs that have not ended start again then, except those whose request sets scheduling.disable_retries.

    Exit status: 0 stopped, or no stack was running; 1 the stack does not stop.
    """
    from trainstack.stack.state import stop_stack

    unfinished = _count_unfinished(state)
    if stop_stack(state):
        click.echo(f"The stack on {str(state)!r} has stopped.")
        if unfinished:
            talk(of_unfinished(unfinished, state))
        return 0
    click.echo(f"No stack is running on {str(state)!r}.")
    for other in running_stacks(Path.cwd(), settings_folder()):
        talk(_of_other(other))
    return 0


def _count_unfinished(state: Path) -> int:
    try:
        ledger = read_stack_env((state / "stack.env").read_text())["TRAINMASTER_LEDGER_BUCKET"]
    except (OSError, KeyError, ValueError):  # not ready
        return 0
    return unfinished_runs(state, ledger)


def unfinished_runs(state: Path, ledger: str) -> int:
    """How many runs of the ledger's folder have not ended: a stack that hangs must not keep `down` from stopping it.

    They have a marker, as has a run that has just ended; its record says so.
    """
    bucket = state / "storage" / "buckets" / ledger
    try:
        markers = list((bucket / ACTIVE_PREFIX).iterdir())
    except OSError:  # its storage runs elsewhere
        return 0
    return sum(
        is_run_id(marker.name) and not _has_ended(bucket / record_object(marker.name)) for marker in markers
    )


def _has_ended(record: Path) -> bool:
    try:
        return json.loads(record.read_bytes())["state"] in set(ENDS)
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or damaged
        return False


def of_unfinished(runs: int, state: Path) -> str:
    """What a stop means for them."""
    said = "1 run has not ended. It starts" if runs == 1 else f"{runs} runs have not ended. They start"
    return f"{said} again at the next: {start_command(state)}"


def _of_other(state: Path) -> str:
    since = started_at(state)
    when = f" since {since.astimezone():%Y-%m-%d %H:%M}" if since is not None else ""
    is_here = is_of(state, Path.cwd())
    one = f"One is running on {str(state)!r}" if is_here else f"Another folder's stack is running{when}"
    return f"{one}. To stop it: {shlex.join(['trainmaster', 'down', '--state', str(state)])}"
