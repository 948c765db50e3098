"""The callbacks of a program: a list, as Keras' `fit` takes it, or a function that returns one."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from trainer.faults import Unusable

EXPECTED = "callbacks: expected a list of Keras callbacks, or a function without arguments that returns one"


def callbacks_from(given: object) -> Callable[[], Sequence[Any]]:
    """A function that returns the callbacks; none for None.

    Raises:
        Unusable: `given` is neither, or its list has something other than callbacks. The function raises it, too.
    """
    if _is_function(given) and _takes_nothing(given):
        return lambda: _checked(given())
    callbacks = _checked(() if given is None else given)
    return lambda: callbacks


def _checked(given: object) -> Sequence[Any]:
    if not isinstance(given, list | tuple):
        raise Unusable(f"{EXPECTED}; found {_described(given)}.")
    faults = [f"{EXPECTED}; the list has {_described(each)}." for each in given if not _is_callback(each)]
    if faults:
        raise Unusable(*faults)
    return given


def _is_callback(each: object) -> bool:
    """Of either Keras; neither may be imported before the settings are known to be sound."""
    return not isinstance(each, type) and callable(getattr(each, "on_epoch_end", None))


def _is_function(given: object) -> TypeGuard[Callable[..., object]]:
    return callable(given) and not isinstance(given, type)


def _described(given: object) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}: write {given.__name__}()"
    if _is_function(given):
        return f"a function that takes {inspect.signature(given)}"
    if _is_callback(given):
        return f"a single {type(given).__name__}: write it in brackets"
    return f"{given!r:.80}"


def _takes_nothing(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    return True
