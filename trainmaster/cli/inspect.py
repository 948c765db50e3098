"""`trainmaster inspect TREE`: examine a training program before money is spent on it."""

import os
from pathlib import Path
from typing import Any

import click

_PATH = click.Path(path_type=Path)


class _WithProgram(click.Command):
    """Separates the words after `--`, which are the program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        here = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:here])
        ctx.params["program"] = tuple(args[here + 1 :])
        return rest


@click.command(
    cls=_WithProgram, epilog="After `--`: the program to start in a smoke run, or only its arguments."
)
@click.argument("tree", type=_PATH, default=".", metavar="[TREE_OR_FILE]")
@click.option("--request", type=_PATH, help="The request that will run the program, in any dialect.")
@click.option(
    "--module", help="The module to run; default: the request's, else the image's, else trainer.task."
)
@click.option("--smoke", is_flag=True, help="Start the program as the job would; `--` also implies it.")
@click.option(
    "--smoke_timeout_s",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="Time limit of the smoke run in seconds.",
)
@click.option("--keep_output", type=_PATH, metavar="DIR", help="Copy what the replicas printed to DIR.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding.")
# Any: the fields of Options, as the decorators above read them.
def inspect(**options: Any) -> int:
    """Examine a training program before money is spent on it.

    Exit status: 0 no errors, 1 errors found, 2 invalid usage.
    """
    from trainmaster.inspect.inspection import InspectOptions, main

    return main(InspectOptions(**options), os.environ)
