"""One setting: how its text is read, what it means, and its default. Flags and pages are made from these.

Readers take a text and raise ValueError with a description of valid values.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)
TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class Setting:
    """`reads` is a reader. Where `default` is None, the run chooses, and the help ends with `(default: …)`."""

    reads: Callable[[str], Any]  # Any: each setting has its own type
    help: str
    default: Any = None

    def of(self, value: Any) -> Any:
        """What the reader makes of a value that is given in Python. Raises ValueError as that does."""
        return self.default if value == self.default else self.reads(text_of(value))


def with_defaults(settings: Mapping[str, Setting], defaults: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings, some with other defaults."""
    return {name: replace(each, default=defaults.get(name, each.default)) for name, each in settings.items()}


def text_of(value: Any) -> str:
    """A value as it is written on a command line: words with commas between them, sizes with an x."""
    if isinstance(value, list | tuple):
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


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader of one of these words, spelled exactly so."""

    def reads(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return reads


def truth(text: str) -> bool:
    if text.lower() not in TRUTHS:
        raise ValueError("true or false")
    return TRUTHS[text.lower()]


def number(minimum: float | None = None, maximum: float | None = None) -> Callable[[str], float]:
    """A reader of finite numbers; the limits are inclusive."""
    return _within(float, "a number", minimum, maximum)


def whole_number(minimum: int | None = None, maximum: int | None = None) -> Callable[[str], int]:
    """A reader of whole numbers; the limits are inclusive. Tuning services write 128 as `128.0`, too."""
    return _within(int, "a whole number", minimum, maximum)


def _within(
    kind: Callable[[float], Number], name: str, low: float | None, high: float | None
) -> Callable[[str], Number]:
    limits = {
        (False, False): "",
        (True, False): f" of at least {low}",
        (False, True): f" of at most {high}",
        (True, True): f" from {low} to {high}",
    }[low is not None, high is not None]

    def reads(text: str) -> Number:
        found = _finite(text)
        is_within = (low is None or found >= low) and (high is None or found <= high)
        if math.isnan(found) or not is_within or found != kind(found):
            raise ValueError(f"{name}{limits}")
        return kind(found)

    return reads


def positive(text: str) -> float:
    if not (found := _finite(text)) > 0:
        raise ValueError("a number above 0")
    return found


def _finite(text: str) -> float:
    """The finite number in `text`, else NaN, which no comparison holds for."""
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


count = whole_number(1)
