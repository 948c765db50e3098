"""`trainmaster up`, `down`, `status` and `preempt`: the local stack, with its own options."""

import os
import sys

import click


def _verb(name: str) -> click.Command:
    """The verb of that name; every word behind it, `--help` too, is the local stack's to read."""

    @click.command(name, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def run(words: tuple[str, ...]) -> None:
        from trainmaster.local.stack.command import main

        status = main([name, *words])
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing is left to end, and Python takes a second to unload the libraries one by one.
        os._exit(status)

    return run


up, down, status, preempt = map(_verb, ("up", "down", "status", "preempt"))
