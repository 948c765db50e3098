"""What callbacks have counted so far, kept in checkpoints so that a restarted run continues from it.

Keras keeps none of this: an `EarlyStopping` whose run is preempted every hour would never stop it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class Kept:
    """The numbers among the callbacks' attributes that changed since `begin`: EarlyStopping's `wait` and `best`, say.

    A callback with `restore_best_weights` starts afresh: its weights are not kept, and without them its best is wrong.
    """

    def __init__(self, callbacks: Sequence[Any], saved: Sequence[Mapping[str, Any]] = ()) -> None:
        """`saved` is what `changed` returned in an earlier attempt; that of another class of callback is left out."""
        self._callbacks = [each for each in callbacks if not getattr(each, "restore_best_weights", False)]
        self._saved = saved
        self._before: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Continue from what was saved. For after `on_train_begin`, in which callbacks forget what they know."""
        self._before = [_numbers(each) for each in self._callbacks]
        for callback, state in zip(self._callbacks, self._saved, strict=False):
            if state["of"] == type(callback).__name__:
                vars(callback).update(state["numbers"])

    def changed(self) -> list[dict[str, Any]]:
        """For each callback its class and these numbers by name, to be written as JSON."""
        return [
            {"of": type(each).__name__, "numbers": dict(_numbers(each).items() - before.items())}
            for each, before in zip(self._callbacks, self._before, strict=True)
        ]


def _numbers(callback: Any) -> dict[str, Any]:
    found = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in vars(callback).items()
    }
    return {
        name: value for name, value in found.items() if value is None or isinstance(value, bool | int | float)
    }
