"""Keras callbacks in a run that may be killed: which are taken, what is kept of them, and which epoch is the best."""

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from trainer.faults import Unusable

EXPECTED_CALLBACKS = (
    "callbacks: expected a list of Keras callbacks, or a function without arguments that returns one"
)
KEPT_CHARS = 64 << 10
"""Of one attribute as JSON. A description of a checkpoint may have 1 MiB."""
NOT_KEPT = object()


def callbacks_from(given: Any) -> Callable[[], Sequence[Any]]:
    """A function that returns the callbacks; none for None, and one alone is taken as a list of one, as Keras takes it.

    Raises:
        Unusable: something is not a callback, or the function takes arguments. The function that is returned raises it, too.
    """
    if callable(given) and not isinstance(given, type):
        try:
            inspect.signature(given).bind()
        except TypeError as error:
            raise Unusable(f"{EXPECTED_CALLBACKS}; the function is {error}.") from error
        return lambda: checked_callbacks(given())
    callbacks = checked_callbacks(given)
    return lambda: callbacks


def checked_callbacks(given: Any) -> Sequence[Any]:
    """Callbacks of either Keras, by their methods: neither may be imported before the settings are known to be sound.

    Raises:
        Unusable: one is not a callback, or would undo what the trainer does.
    """
    callbacks = given if isinstance(given, list | tuple) else [] if given is None else [given]
    faults = [
        f"{EXPECTED_CALLBACKS}; found {callback!r:.80}."
        for callback in callbacks
        if isinstance(callback, type) or not callable(getattr(callback, "on_epoch_end", None))
    ] + [
        "callbacks: BackupAndRestore would put its own backup in the place of the checkpoint that the trainer has restored. "
        "Remove it: a restarted run continues by itself."
        for callback in callbacks
        if any(kind.__name__ == "BackupAndRestore" for kind in type(callback).__mro__)
    ]
    if faults:
        raise Unusable(*faults)
    return callbacks


def has_hook(callbacks: Sequence[Any], *names: str) -> bool:
    """Whether a callback defines one of these methods; Keras marks its own empty ones."""
    methods = (getattr(callback, name, None) for callback in callbacks for name in names)
    return any(method is not None and not getattr(method, "_is_default", False) for method in methods)


class BestEpoch:
    """The epoch after which a metric was best, so far, and was reached first.

    Args:
        monitor: the metric's name in the logs of an epoch.
        is_higher_better: else lower is.
    """

    def __init__(self, monitor: str, *, is_higher_better: bool) -> None:
        self.monitor, self._sign = monitor, 1 if is_higher_better else -1
        self.best: float | None = None
        self.best_epoch = 0

    def note(self, epoch: int, logs: Mapping[str, float]) -> None:
        """`epoch` counts from 0. An epoch without the metric, or with one that is not a number, is not the best."""
        value = logs.get(self.monitor, math.nan)
        if not math.isnan(value) and (self.best is None or self._sign * (value - self.best) > 0):
            self.best, self.best_epoch = value, epoch


def best_epoch_of(callbacks: Sequence[Any], asked: tuple[str, bool] | None) -> Any | None:
    """What says by its `best` and `best_epoch` which epoch is exported; None: the last one.

    `asked` is the setting's metric and direction. Without it, that is the last EarlyStopping with
    `restore_best_weights`, which keeps the weights in memory, where a kill loses them: the epoch's checkpoint takes
    their place.
    """
    stopping = [callback for callback in callbacks if getattr(callback, "restore_best_weights", False)]
    for callback in stopping:
        callback.restore_best_weights = False
    if asked is not None:
        return BestEpoch(asked[0], is_higher_better=asked[1])
    return stopping[-1] if stopping else None


def finished_epochs_at_best(best: Any | None) -> int:
    """How many epochs were finished when it was the best; 0 while none is."""
    value = getattr(best, "best", None)
    return 0 if best is None or value is None or not math.isfinite(value) else int(best.best_epoch) + 1


class KeptState:
    """The attributes of callbacks that changed since `begin`: EarlyStopping's `wait`, own lists of losses, variables.

    Numbers, texts, lists and dictionaries of them, small arrays and TensorFlow's variables are kept.
    """

    def __init__(self, callbacks: Sequence[Any], saved: Sequence[Mapping[str, Any]] = ()) -> None:
        """`saved` is what `changed_state` returned in an earlier attempt; that of another class of callback is left out."""
        self._callbacks, self._saved = callbacks, saved
        self._before: list[dict[str, tuple[Any, Any]]] = []

    def begin(self) -> list[str]:
        """Continue from what was saved. For after `on_train_begin`, in which callbacks forget what they know.

        Returns what could not be kept, as `MyCallback.attribute`.
        """
        self._before = [
            {name: (value, _encode_value(value)) for name, value in vars(callback).items()}
            for callback in self._callbacks
        ]
        lost = []
        for callback, state in zip(self._callbacks, self._saved, strict=False):
            if state["of"] == type(callback).__name__:
                for name, encoded in state["numbers"].items():
                    _restore(callback, name, _decode_value(encoded))
                lost += [f"{state['of']}.{name}" for name in state.get("lost", ())]
        return lost

    def changed_state(self) -> list[dict[str, Any]]:
        """For each callback its class, these attributes by name, and the names of those that changed and cannot be kept."""
        return [self._changed_in(*pair) for pair in zip(self._callbacks, self._before, strict=True)]

    def _changed_in(self, callback: Any, before: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
        kept, lost = {}, []
        for name, value in vars(callback).items():
            old, encoded_before = before.get(name, (NOT_KEPT, NOT_KEPT))
            if (encoded := _encode_value(value)) is not NOT_KEPT:
                if encoded != encoded_before:
                    kept[name] = encoded
            elif value is not old and not name.startswith("_"):
                lost.append(name)
        return {"of": type(callback).__name__, "numbers": kept, **({"lost": sorted(lost)} if lost else {})}


def _restore(callback: Any, name: str, value: Any) -> None:
    """Set an attribute; one that is a variable by now is assigned."""
    now = vars(callback).get(name)
    if hasattr(now, "assign"):
        now.assign(np.asarray(value))
    else:
        setattr(callback, name, np.asarray(value, now.dtype) if isinstance(now, np.ndarray) else value)


def _encode_value(value: Any) -> Any:
    """As JSON can hold it, a dictionary as its pairs; NOT_KEPT if that is not possible, or too long."""
    with suppress(ValueError, TypeError, RecursionError):
        plain = _plain(value)
        if len(json.dumps(plain)) <= KEPT_CHARS:
            return plain
    return NOT_KEPT


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray) or hasattr(value, "assign"):
        if math.prod(value.shape) > KEPT_CHARS:
            raise ValueError("too many elements")
        return (value.numpy() if hasattr(value, "assign") else value).tolist()
    if isinstance(value, list | tuple) and len(value) <= KEPT_CHARS:
        return [_plain(item) for item in value]
    if isinstance(value, dict) and len(value) <= KEPT_CHARS:
        return {"pairs": [[_plain(name), _plain(item)] for name, item in value.items()]}
    raise TypeError(type(value).__name__)


def _decode_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _decode_value(item) for name, item in value["pairs"]}
    return [_decode_value(item) for item in value] if isinstance(value, list) else value
