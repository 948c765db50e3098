"""The command line of `trainmaster inspect`."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DESCRIPTION = """Examine a training program before money is spent. Exit status: 0 no errors, 1 errors found,
2 asked for what cannot be."""
DEFAULT_TIMEOUT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """`program` is what stands behind `--`."""

    trees: tuple[Path, ...]
    request: Path | None
    module: str | None
    smoke: bool
    smoke_timeout_s: float
    smoke_replicas: int | None
    keep_output: Path | None
    as_json: bool
    program: tuple[str, ...]


def options_from(arguments: Sequence[str]) -> Options:
    """Ends with status 2 and the usage for a wrong command line. A program behind `--` asks for a smoke run."""
    own, _, program = _split(arguments)
    given = _parser().parse_args(own)
    return Options(
        trees=tuple(given.trees),
        request=given.request,
        module=given.module,
        smoke=bool(program) if given.smoke is None else given.smoke,
        smoke_timeout_s=given.smoke_timeout_s,
        smoke_replicas=given.smoke_replicas,
        keep_output=given.keep_output,
        as_json=given.json,
        program=tuple(program),
    )


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], str, Sequence[str]]:
    if "--" not in arguments:
        return arguments, "", ()
    here = arguments.index("--")
    return arguments[:here], "--", arguments[here + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainmaster inspect",
        description=DESCRIPTION,
        epilog="Behind `--`: the program to start in the smoke run, or its arguments alone.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "trees",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="TREE_OR_FILE",
        help="source (default: the working directory)",
    )
    parser.add_argument(
        "--request", type=Path, help="the request that the program will be run by, in any dialect"
    )
    parser.add_argument(
        "--module", help="the module that is run (default: the request's, the image's, trainer.task)"
    )
    parser.add_argument(
        "--smoke",
        action=argparse.BooleanOptionalAction,
        help="start the program as a chief and a worker (default: when something stands behind `--`)",
    )
    parser.add_argument(
        "--smoke_timeout_s",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="N",
        help="seconds that the smoke run may take (default: %(default)g)",
    )
    parser.add_argument(
        "--smoke_replicas",
        type=int,
        choices=(1, 2),
        help="replicas to start (default: 2, or 1 when the request asks for one)",
    )
    parser.add_argument("--keep_output", type=Path, metavar="DIR", help="copy what the replicas wrote to DIR")
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0; found {text!r}")
    return seconds
