"""`trainmaster inspect TREE`: examine a training program, with the options of trainmaster.inspect."""

import os

import click

from trainmaster.cli.passed_on import PassedOn


@click.command(cls=PassedOn)
def inspect(words: tuple[str, ...]) -> int:
    """Examine a training program before money is spent on it."""
    from trainmaster.inspect.command import main

    return main(words, dict(os.environ))
