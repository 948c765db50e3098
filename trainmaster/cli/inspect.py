"""`trainmaster inspect TREE`: examine a training program, with the options of trainmaster.inspect."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

STARTED_WITH = Path("/proc/self/environ")


@click.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def inspect(words: tuple[str, ...]) -> int:
    """Examine a training program before money is spent on it."""
    from trainmaster.inspect.command import main

    return main(words, environment_at_start())


def environment_at_start() -> Mapping[str, str]:
    """The variables this process was given, whatever an import has changed since."""
    try:
        text = os.fsdecode(STARTED_WITH.read_bytes())
    except OSError:
        return dict(os.environ)
    pairs = (pair.partition("=") for pair in text.split("\0"))
    return {name: value for name, equals, value in pairs if equals}
