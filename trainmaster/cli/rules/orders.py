"""What verbs that give an order say when they are interrupted."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from trainmaster.cli.exits import Exit
from trainmaster.cli.verb import talk


@contextmanager
def order_survives_interrupt(see: str) -> Iterator[None]:
    """End the command after Ctrl-C, and say that the order stays given and which command shows its outcome."""
    try:
        yield
    except KeyboardInterrupt:
        talk(f"\nStopped waiting. An order that was sent is carried out all the same. See: {see}")
        raise click.exceptions.Exit(Exit.INTERRUPTED) from None
