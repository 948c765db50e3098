"""`trainmaster demo`: a request, a tuning, a retraining or a script from its event to its model, on this machine."""

import json
import os
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.resources import ROOT

_NEEDED = ("tensorflow", "tensorflow_datasets")
"""Packages that the extra `tensorflow` brings."""
LIGHT = "light"
FOLDERS = {"training": "demo", "tuning": "demo-tuning", "retraining": "demo-retrain", LIGHT: "demo-light"}
"""By demo, where its local stack keeps its state."""
QUICK_TICKS = ("--tick-s", "2")  # the cloud's tick comes once a minute


@click.command()
@click.argument(
    "name", metavar="[training|tuning|retraining]", type=click.Choice([*FOLDERS][:-1]), required=False
)
@click.option(
    "--light", is_flag=True, help="train the script of `trainmaster init` instead, without TensorFlow"
)
@click.option("--state", type=Path, metavar="DIR", help="folder of the demo's stack, emptied at the start")
def demo(name: str | None, light: bool, state: Path | None) -> int:
    """Watch a request become a trained model, six trials search for the best one, or new data train the next champion.

    It starts a local stack, runs the commands that it shows, and stops the stack. With --light, a small script trains
    twice, in seconds, and the better model becomes champion.

    Exit status: 0 if everything it shows holds, else 1.
    """
    if name and light:
        raise click.UsageError(f"--light is a separate demo: leave out {name!r} or --light.")
    name = LIGHT if light else name or "training"
    if not light and any(find_spec(package) is None for package in _NEEDED):
        raise click.ClickException(f"The demo {name} needs more packages: {install_command(['tensorflow'])}")
    from rich.console import Console

    from trainmaster.cli.demo.plays import PLAYS, PREPARED_DATA
    from trainmaster.cli.demo.stage import DemoFailed, fresh_stage
    from trainmaster.cli.stack.process import StackFailed

    # Isolated replicas do not see folders of this machine.
    isolation = ("--isolation", "none") if os.environ.get(PREPARED_DATA) else ()
    folder = state or Path(".trainmaster") / FOLDERS[name]
    try:
        with fresh_stage(Console(highlight=False), folder, *QUICK_TICKS, *isolation) as stage:
            PLAYS[name](stage)
    except (DemoFailed, StackFailed) as problem:
        raise click.ClickException(str(problem)) from problem
    return ExitStatus.DONE


def install_command(extras: Iterable[str]) -> str:
    """The command: this package is on no index, so its checkout or its wheel is named.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/, read 2026-11.
    """
    wanted = f"[{','.join(extras)}]"
    try:
        text = distribution("trainmaster").read_text("direct_url.json")
    except PackageNotFoundError:  # run from a checkout as it is
        return f"pip install '{ROOT}{wanted}'"
    if text is None:
        return f"pip install 'trainmaster{wanted}'"
    origin = json.loads(text)
    url = urlsplit(origin["url"])
    if url.scheme != "file":
        return f"pip install 'trainmaster{wanted} @ {origin['url']}'"
    editable = "--editable " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{Path(unquote(url.path))}{wanted}'"
