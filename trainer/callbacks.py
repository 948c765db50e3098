"""The callbacks of a program: a list, as Keras' `fit` takes it, or a function that returns one."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from trainer.faults import Unusable

EXPECTED = "callbacks: expected a list of Keras callbacks, or a function without arguments that returns one"


def callbacks_from(given: Any) -> Callable[[], Sequence[Any]]:
    """A function that returns the callbacks; none for None, and one alone is taken as a list of one, as Keras takes it.

    Raises:
        Unusable: something is no callback, or the function takes arguments. The function that is returned raises it, too.
    """
    if callable(given) and not isinstance(given, type):
        try:
            inspect.signature(given).bind()
        except TypeError as error:
            raise Unusable(f"{EXPECTED}; the function is {error}.") from error
        return lambda: _checked(given())
    callbacks = _checked(given)
    return lambda: callbacks


def _checked(given: Any) -> Sequence[Any]:
    """Callbacks of either Keras, by their methods: neither may be imported before the settings are known to be sound."""
    callbacks = given if isinstance(given, list | tuple) else [] if given is None else [given]
    faults = [
        f"{EXPECTED}; found {each!r:.80}."
        for each in callbacks
        if isinstance(each, type) or not callable(getattr(each, "on_epoch_end", None))
    ]
    if faults:
        raise Unusable(*faults)
    return callbacks
