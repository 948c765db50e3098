"""Values that one workload alone takes, each as the flag of its name: numbers within limits, and words of a list.

Each kind's `reads` turns a flag's text into the value and raises ValueError with what it would have taken.
"""

from dataclasses import dataclass
from typing import TypeVar

from trainer.command_line.read import number, whole

Value = int | float | str
Kind = TypeVar("Kind", int, float)


@dataclass(frozen=True, kw_only=True)
class Number:
    """Limits are inclusive; infinities and NaN are refused."""

    default: float
    minimum: float | None = None
    maximum: float | None = None
    help: str

    def reads(self, text: str) -> float:
        return self._within(number(text), "a number")

    def _within(self, found: Kind | None, kind: str) -> Kind:
        low, high = self.minimum, self.maximum
        if found is None or (low is not None and found < low) or (high is not None and found > high):
            raise ValueError(f"{kind}{_limits(low, high)}")
        return found


class WholeNumber(Number):
    """Tuning services write whole numbers as `128.0` too, which is read as 128."""

    def reads(self, text: str) -> int:
        return self._within(whole(text), "a whole number")


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """A word of `choices`, spelled exactly so."""

    default: str
    choices: tuple[str, ...]
    help: str

    def reads(self, text: str) -> str:
        if text not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)}")
        return text


Hyperparameter = Number | OneOf


def _limits(minimum: float | None, maximum: float | None) -> str:
    match minimum, maximum:
        case None, None:
            return ""
        case low, None:
            return f" of at least {low:g}"
        case None, high:
            return f" of at most {high:g}"
        case low, high:
            return f" from {low:g} to {high:g}"
