"""`trainmaster up`, `down`, `status`, `env`, `provide` and `preempt`: the local stack, with its own options."""

import os
import sys

import click

from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of


class PassedOn(click.Command):
    """Gives its function every word behind the verb as `words`, `--help` and `--` too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """No word is left for click."""
        ctx.params["words"] = tuple(args)
        return []


def _of_stack(name: str) -> click.Command:
    @click.command(name, cls=PassedOn)
    def run(words: tuple[str, ...]) -> None:
        if name == "up":
            import_parts_of(*VERTEX_CLIENT)  # the services need Vertex AI's messages, and none of its clients
        from trainmaster.local.stack.command import main

        status = main([name, *words])
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing is left to clean up, and Python takes a second to unload the libraries.
        os._exit(status)

    return run


up, down, status, env, provide, preempt = map(
    _of_stack, ("up", "down", "status", "env", "provide", "preempt")
)
