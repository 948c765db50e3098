"""`trainmaster demo`: watch a request, a tuning or a retraining from its event to its model, on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from trainmaster.cli.extras import install_command
from trainmaster.cli.verb import JSON, output_option
from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of


@dataclass(frozen=True, kw_only=True)
class _Demo:
    state: str  # the folder of its local stack
    module: str  # its `run` plays the demo


SUMMARY = "summary"
_NEEDED = ("tensorflow", "tensorflow_datasets")
"""Packages that the extra `tensorflow` brings."""
DEMOS: Mapping[str, _Demo] = {
    "training": _Demo(state="demo", module="training"),
    "tuning": _Demo(state="demo-tuning", module="tuning.play"),
    "retraining": _Demo(state="demo-retrain", module="retraining.play"),
}


@click.command()
@click.argument(
    "name", metavar="[training|tuning|retraining]", type=click.Choice([*DEMOS]), default="training"
)
@click.option("--state", type=Path, metavar="DIR", help="folder of the demo's stack, emptied at the start")
@output_option(SUMMARY, JSON)
def demo(name: str, state: Path | None, output: str) -> int:
    """Watch a request become a trained model, six trials search for the best one, or new data train the next champion.

    It ends with a summary, or with -o json with the records of its runs on standard output.

    Exit status: 0 if everything it shows holds, else 1.
    """
    chosen = DEMOS[name]
    if any(find_spec(package) is None for package in _NEEDED):
        raise click.ClickException(f"The demo {name} needs more packages: {install_command(['tensorflow'])}")
    import_parts_of(*VERTEX_CLIENT)  # of its many clients a demo needs one
    status: int = import_module(f"trainmaster.cli.demo.{chosen.module}").run(
        state or Path(".trainmaster") / chosen.state, as_json=output == JSON
    )
    return status
