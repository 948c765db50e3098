"""`trainmaster down`: stops the local stack."""

from pathlib import Path

import click

from trainmaster.cli.stack.options import state_option


@click.command()
@state_option
def down(state: Path) -> int:
    """Stop the local stack that runs on a state folder. The folder stays, and the next start continues from it.

    Exit status: 0 no stack runs there any more, 1 it does not stop.
    """
    from trainmaster.local.stack.owner import stop_stack

    if stop_stack(state):
        click.echo(f"The stack on {str(state)!r} has stopped.")
    else:
        click.echo(f"No stack is running on {str(state)!r}.")
    return 0
