"""`trainmaster demo`: watch a request, a tuning or a retraining from its event to its model, on this machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click


@dataclass(frozen=True, kw_only=True)
class _Demo:
    state: Path  # the folder of its local stack
    extras: Mapping[str, str]  # by module that it needs, the extra that brings it
    play: Callable[[Path], int]


def _training(state: Path) -> int:
    from trainmaster.cli.demo.training import DEMO

    return DEMO.run(state)


def _tuning(state: Path) -> int:
    from trainmaster.cli.demo.tuning import DEMO

    return DEMO.run(state)


def _retraining(state: Path) -> int:
    from trainmaster.cli.demo.retrain import run

    return run(state)


TENSORFLOW = {"tensorflow": "tensorflow", "tensorflow_datasets": "tensorflow"}
DEMOS: Mapping[str, _Demo] = {
    "training": _Demo(state=Path(".trainmaster/demo"), extras=TENSORFLOW, play=_training),
    "tuning": _Demo(
        state=Path(".trainmaster/demo-tuning"), extras={**TENSORFLOW, "matplotlib": "study"}, play=_tuning
    ),
    "retraining": _Demo(state=Path(".trainmaster/demo-retrain"), extras=TENSORFLOW, play=_retraining),
}


@click.command()
@click.argument(
    "name", metavar="[training|tuning|retraining]", type=click.Choice([*DEMOS]), default="training"
)
@click.option("--state", type=Path, metavar="DIR", help="folder of the demo's stack, emptied at the start")
def demo(name: str, state: Path | None) -> int:
    """Watch a request become a trained model, six trials search for the best one, or new data train the next champion.

    Exit status: 0 if everything it shows holds, else 1.
    """
    chosen = DEMOS[name]
    missing = sorted({extra for module, extra in chosen.extras.items() if find_spec(module) is None})
    if missing:
        wanted = f"trainmaster[{','.join(missing)}]"
        raise click.ClickException(f"The demo {name} needs more packages: pip install '{wanted}'")
    return chosen.play(state or chosen.state)
