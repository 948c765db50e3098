"""The workloads: every module of this package that defines WORKLOAD, under the module's name.

To add a workload, add a file; docs/reference/trainer.md shows one. The modules here import TensorFlow only
when a model is built, so that flags are checked at once.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.command_line.hyperparameters import Hyperparameter
from trainer.faults import Unusable, nearest

LOSS = "loss"


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The inputs of a workload's `build`; `hyperparameters` has a value for each one that it declares."""

    image_size: tuple[int, int]  # height, width in pixels
    classes: int
    learning_rate: float
    hyperparameters: Mapping[str, Any]  # Any: each declaration gives its value's type
    weights_path: str | None  # a file to start from; None: random values


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Public weights of a workload's model: one file, known by its md5 hash."""

    name: str
    url: str
    md5: str


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model and the defaults of its flags.

    `build` is called in the strategy's scope and returns a compiled tf.keras.Model: float32
    [batch, height, width, 3] from 0 to 1 in, probabilities float32 [batch, classes] out. Two classes
    may have one sigmoid unit, [batch, 1], the probability of the second. It raises Unusable if the
    spec does not fit the model.

    Attributes:
        hyperparameters: additional flags of this workload, by name.
        metrics: names of the metrics that the model is compiled with; `accuracy` is always one.
        mirrored: on a single machine it trains with MirroredStrategy, whatever the number of devices.
    """

    build: Callable[[ModelSpec], Any]  # Any: TensorFlow has no types
    dataset: str
    image_size: tuple[int, int]
    batch_size: int
    epochs: int
    learning_rate: float
    hyperparameters: Mapping[str, Hyperparameter] = field(default_factory=dict)
    metrics: tuple[str, ...] = ("accuracy",)
    mirrored: bool = False
    pretrained: Pretrained | None = None


def names() -> list[str]:
    """Every workload's name, sorted; nothing is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def workload_named(name: str) -> Workload:
    """The workload that the module `name` defines.

    Raises:
        Unusable: there is no such module.
    """
    if name not in names():
        raise Unusable(
            f"Unknown workload {name!r}; expected one of {', '.join(names())}.{nearest(name, names())}"
        )
    workload: Workload = importlib.import_module(f"{__name__}.{name}").WORKLOAD
    return workload


def names_with(hyperparameter: str) -> list[str]:
    """The workloads that declare `hyperparameter`. Imports all of them."""
    return [name for name in names() if hyperparameter in workload_named(name).hyperparameters]
