"""What can be trained: every module beside this one that defines WORKLOAD, under the module's name.

To add a workload, add a file; docs/trainer.md shows one.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer.faults import Unusable, nearest


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """What a workload needs to know to build its model."""

    image_size: tuple[int, int]  # height, width in pixels
    classes: int
    learning_rate: float
    weights_path: str | None  # a file to start from; None: random values


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Public weights of a workload's model: one file, known by its md5 hash."""

    name: str
    url: str
    md5: str


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model and the values that its flags have by default.

    `build` is called in the strategy's scope and returns a compiled tf.keras.Model:
    float32 [batch, height, width, 3] from 0 to 1 in, probabilities float32 [batch, classes] out,
    with a metric named `accuracy`.
    """

    build: Callable[[ModelSpec], Any]  # Any: TensorFlow has no types
    dataset: str
    image_size: tuple[int, int]
    batch_size: int
    epochs: int
    learning_rate: float
    pretrained: Pretrained | None = None


def names() -> list[str]:
    """Every workload's name, sorted; nothing is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def workload_named(name: str) -> Workload:
    """The workload that the module `name` defines; TensorFlow is imported with it.

    Raises:
        Unusable: there is no such module.
    """
    if name not in names():
        raise Unusable(f"Unknown workload {name!r}; there are {', '.join(names())}.{nearest(name, names())}")
    workload: Workload = importlib.import_module(f"{__name__}.{name}").WORKLOAD
    return workload
