"""`trainmaster down`: stops the local stack."""

import shlex
from pathlib import Path

import click

from trainmaster.cli.stack.options import state_option
from trainmaster.cli.verb import settings_folder, talk
from trainmaster.client.stack import running_stacks


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
        talk(
            f"One is running on {str(other)!r}. To stop it: {shlex.join(['trainmaster', 'down', '--state', str(other)])}"
        )
    return 0
