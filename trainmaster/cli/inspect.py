"""`trainmaster inspect TREE`: examine a training program, with the options of trainmaster.inspect."""

import os

import click


@click.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def inspect(words: tuple[str, ...]) -> int:
    """Examine a training program before money is spent on it."""
    from trainmaster.inspect.command import main

    return main(words, os.environ)
