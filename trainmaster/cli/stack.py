"""`trainmaster up`, `down`, `status` and `preempt`: the local stack, with its own options."""

import os
import sys

import click

from trainmaster.cli.passed_on import PassedOn


def _verb(name: str) -> click.Command:
    @click.command(name, cls=PassedOn)
    def run(words: tuple[str, ...]) -> None:
        from trainmaster.local.stack.command import main

        status = main([name, *words])
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing is left to end, and Python takes a second to unload the libraries one by one.
        os._exit(status)

    return run


up, down, status, preempt = map(_verb, ("up", "down", "status", "preempt"))
