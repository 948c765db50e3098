"""Values from their text. Each reader raises ValueError whose message says what it takes."""

import math
from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", int, float)
TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


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


def number(text: str) -> float | None:
    """The finite number in `text`, or None."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def whole(text: str) -> int | None:
    """The whole number in `text`, or None. Tuning services send 128 as `128.0`."""
    found = number(text)
    return None if found is None or found != int(found) else int(found)


def within(
    reads: Callable[[str], Kind | None], kind: str, low: float | None = None, high: float | None = None
) -> Callable[[str], Kind]:
    """A reader of numbers between these limits, which are inclusive."""
    limits = {
        (False, False): "",
        (True, False): f" of at least {low}",
        (False, True): f" of at most {high}",
        (True, True): f" from {low} to {high}",
    }[low is not None, high is not None]

    def limited(text: str) -> Kind:
        found = reads(text)
        if found is None or (low is not None and found < low) or (high is not None and found > high):
            raise ValueError(f"{kind}{limits}")
        return found

    return limited


count = within(whole, "a whole number", 1)
seed = within(whole, "a whole number", 0, 2**31 - 1)


def positive(text: str) -> float:
    found = number(text)
    if found is None or found <= 0:
        raise ValueError("a number above 0")
    return found


def momentum(text: str) -> float | None:
    """The momentum, or None for `auto`."""
    found = number(text)
    if text != "auto" and not (found is not None and 0 < found < 1):
        raise ValueError("auto, or a number above 0 and below 1")
    return found
