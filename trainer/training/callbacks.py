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
ALL_KEPT_CHARS = 8 * KEPT_CHARS
"""Of one attribute and of all, as JSON. A description of a checkpoint may have 1 MiB."""
NOT_KEPT = object()
OF_KERAS = ("tf_keras.", "keras.")
NEVER_KEPT = "min_delta"  # Keras 3 gives it another sign in each process


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


def best_epoch_of(callbacks: Sequence[Any], asked: tuple[str, bool] | None) -> Any | None:
    """The EarlyStopping that knows by its `best` and `best_epoch` which epoch is exported; None: the last one.

    `asked` is the setting's metric and direction, for a new one that never stops. Without it, that is the last of
    the callbacks with `restore_best_weights`, which keeps the weights in memory, where a kill loses them: the epoch's
    checkpoint takes their place.
    """
    stopping = [callback for callback in callbacks if getattr(callback, "restore_best_weights", False)]
    for callback in stopping:
        callback.restore_best_weights = False
    if asked is not None:
        import tensorflow as tf

        metric, is_higher_better = asked
        mode = "max" if is_higher_better else "min"
        kind = type("BestEpoch", (tf.keras.callbacks.EarlyStopping,), {})  # as older checkpoints name it
        best = kind(metric, mode=mode, patience=math.inf)
        best.get_monitor_value = lambda logs: logs.get(metric)  # that of Keras warns of epochs without it
        return best
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
        self.restore()
        return [f"{state['of']}.{name}" for _, state in self._pairs() for name in state.get("lost", ())]

    def restore(self) -> None:
        """Set the attributes once more, where a hook that was passed before is called again."""
        for callback, state in self._pairs():
            for name, encoded in state["numbers"].items():
                _restore(callback, name, _decode_value(encoded))

    def _pairs(self) -> list[tuple[Any, Mapping[str, Any]]]:
        """Callbacks with what was saved of them."""
        pairs = zip(self._callbacks, self._saved, strict=False)
        return [(callback, state) for callback, state in pairs if state["of"] == type(callback).__name__]

    def changed_state(self) -> list[dict[str, Any]]:
        """For each callback its class, these attributes by name, and the names of those that changed and cannot be kept."""
        self._room = ALL_KEPT_CHARS
        return [self._changed_in(*pair) for pair in zip(self._callbacks, self._before, strict=True)]

    def _changed_in(self, callback: Any, before: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
        kept, lost, is_own = {}, [], not type(callback).__module__.startswith(OF_KERAS)
        for name, value in vars(callback).items():
            old, encoded_before = before.get(name, (NOT_KEPT, NOT_KEPT))
            encoded = _encode_value(value)
            if name == NEVER_KEPT or (encoded is not NOT_KEPT and encoded == encoded_before):
                continue
            chars = 0 if encoded is NOT_KEPT else len(json.dumps(encoded))
            if encoded is not NOT_KEPT and chars <= self._room:
                kept[name], self._room = encoded, self._room - chars
            elif (value is not old or chars) and is_own and not name.startswith("_"):
                lost.append(name)
        return {"of": type(callback).__name__, "numbers": kept, **({"lost": sorted(lost)} if lost else {})}


def _restore(callback: Any, name: str, value: Any) -> None:
    """Set an attribute; one that is a variable by now is assigned, and a dictionary stays of its kind."""
    now = vars(callback).get(name)
    if hasattr(now, "assign"):
        now.assign(value)
    elif isinstance(now, dict) and isinstance(value, dict):
        now.clear()
        now.update(value)
    else:
        setattr(callback, name, value)


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
        array = np.asarray(value.numpy() if hasattr(value, "assign") else value)
        return {"array": array.tolist(), "dtype": array.dtype.name}
    if isinstance(value, tuple) and len(value) <= KEPT_CHARS:
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, list) and len(value) <= KEPT_CHARS:
        return [_plain(item) for item in value]
    if isinstance(value, dict) and len(value) <= KEPT_CHARS:
        return {"pairs": [[_plain(name), _plain(item)] for name, item in value.items()]}
    raise TypeError(type(value).__name__)


def _decode_value(value: Any) -> Any:
    if isinstance(value, dict) and "array" in value:
        array = np.asarray(value["array"], value["dtype"])
        return array if array.ndim else array[()]
    if isinstance(value, dict) and "tuple" in value:
        return tuple(map(_decode_value, value["tuple"]))
    if isinstance(value, dict):
        return {_decode_value(name): _decode_value(item) for name, item in value["pairs"]}
    return [_decode_value(item) for item in value] if isinstance(value, list) else value
