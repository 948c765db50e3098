"""One setting: how its text is read, what it means, and its default. Flags and pages are made from these.

Readers take a text and raise ValueError with a description of valid values.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class Setting:
    """`reads` is a reader. Where `default` is None, the run chooses, and the help ends with `(default: …)`."""

    reads: Callable[[str], Any]  # Any: each setting has its own type
    help: str
    default: Any = None


def number(
    *,
    default: float,
    help: str,  # noqa: A002 - as the field's name
    minimum: float | None = None,
    maximum: float | None = None,
) -> Setting:
    """A finite number; the limits are inclusive."""
    return Setting(within(float, minimum, maximum), help, default)


def whole_number(
    *,
    default: int,
    help: str,  # noqa: A002 - as above
    minimum: int | None = None,
    maximum: int | None = None,
) -> Setting:
    """A whole number; the limits are inclusive. Tuning services write it as `128.0` too, which is read as 128."""
    return Setting(within(int, minimum, maximum), help, default)


def one_of(*, default: str, choices: tuple[str, ...], help: str) -> Setting:  # noqa: A002 - as above
    """A word of `choices`, spelled exactly so."""
    return Setting(choice(choices), help, default)


def with_defaults(settings: Mapping[str, Setting], defaults: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings, some with other defaults."""
    return {name: replace(each, default=defaults.get(name, each.default)) for name, each in settings.items()}


def text_of(value: Any) -> str:
    """A value as a command line has it: words with commas between them, sizes with an x."""
    if isinstance(value, tuple):
        return ("," if all(isinstance(each, str) for each in value) else "x").join(map(str, value))
    return str(value)


def word(text: str) -> str:
    if not text.strip():
        raise ValueError("a value")
    return text.strip()


def words(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise ValueError("words with commas between them")
    return found


def choice(choices: tuple[str, ...]) -> Callable[[str], str]:
    def reads(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return reads


def truth(text: str) -> bool:
    if text.lower() not in TRUTHS:
        raise ValueError("true or false")
    return TRUTHS[text.lower()]


def within(kind: type[float], low: float | None = None, high: float | None = None) -> Callable[[str], Any]:
    """A reader of numbers of this kind, int or float, between the limits, which are inclusive."""
    expected = "a whole number" if kind is int else "a number"
    if low is not None and high is not None:
        expected += f" from {low} to {high}"
    elif low is not None or high is not None:
        expected += f" of at least {low}" if high is None else f" of at most {high}"
    bottom, top = -math.inf if low is None else low, math.inf if high is None else high

    def reads(text: str) -> float:
        found = _finite(text)
        if not bottom <= found <= top or found != kind(found):
            raise ValueError(expected)
        return kind(found)

    return reads


def positive(text: str) -> float:
    if not (found := _finite(text)) > 0:
        raise ValueError("a number above 0")
    return found


def _finite(text: str) -> float:
    """The finite number in `text`, else NaN, which is between no limits."""
    try:
        found = float(text)
    except ValueError:
        return math.nan
    return found if math.isfinite(found) else math.nan


def momentum(text: str) -> float | None:
    """The momentum, or None for `auto`."""
    if text == "auto":
        return None
    if not 0 < (found := _finite(text)) < 1:
        raise ValueError("auto, or a number above 0 and below 1")
    return found


count = within(int, 1)
