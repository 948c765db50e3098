"""`trainmaster down`: stops the local stack."""

import shlex
from pathlib import Path

import click

from trainmaster.cli.stack.options import state_option
from trainmaster.cli.verb import settings_folder, talk
from trainmaster.client.stack import folder_of, is_of, running_stacks, started_at


@click.command()
@state_option
def down(state: Path) -> int:
    """Stop the local stack that runs on a state folder. The folder stays, and the next start continues from it.

    Exit status: 0 stopped, or no stack was running; 1 the stack does not stop.
    """
    from trainmaster.local.stack.state import stop_stack

    if stop_stack(state):
        click.echo(f"The stack on {str(state)!r} has stopped.")
        return 0
    click.echo(f"No stack is running on {str(state)!r}.")
    for other in running_stacks(Path.cwd(), settings_folder()):
        talk(_of_here(other) if is_of(other, Path.cwd()) else _of_another_folder(other))
    return 0


def _of_here(state: Path) -> str:
    command = shlex.join(["trainmaster", "down", "--state", str(state)])
    return f"One is running on {str(state)!r}. To stop it: {command}"


def _of_another_folder(state: Path) -> str:
    """Without the command that stops it: what runs there may be another user's, or other work of this one's."""
    since = started_at(state)
    when = f", since {since.astimezone():%Y-%m-%d %H:%M}" if since is not None else ""
    return f"Another folder's stack is running, that of {str(folder_of(state))!r}{when}. It is stopped from its own folder."
