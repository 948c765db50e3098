"""Verbs whose options another parser reads."""

import click


class PassedOn(click.Command):
    """Gives its function every word behind the verb as `words`, `--help` and `--` too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """No word is left for click."""
        ctx.params["words"] = tuple(args)
        return []
