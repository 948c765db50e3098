"""Values that one workload alone takes, each as the flag of its name: numbers within limits, and words of a list.

Each kind's `reads` turns a flag's text into the value and raises ValueError with what it would have taken.
"""

from dataclasses import dataclass

from trainer.read import number, whole

Value = int | float | str


@dataclass(frozen=True, kw_only=True)
class WholeNumber:
    """Limits are inclusive. Tuning services write whole numbers as `128.0` too, which is read as 128."""

    default: int
    minimum: int | None = None
    maximum: int | None = None
    help: str

    def reads(self, text: str) -> int:
        found = whole(text)
        if found is None or not _is_within(found, self.minimum, self.maximum):
            raise ValueError(f"a whole number{_limits(self.minimum, self.maximum)}")
        return found


@dataclass(frozen=True, kw_only=True)
class Number:
    """Limits are inclusive; infinities and NaN are refused."""

    default: float
    minimum: float | None = None
    maximum: float | None = None
    help: str

    def reads(self, text: str) -> float:
        found = number(text)
        if found is None or not _is_within(found, self.minimum, self.maximum):
            raise ValueError(f"a number{_limits(self.minimum, self.maximum)}")
        return found


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


Hyperparameter = WholeNumber | Number | OneOf


def _is_within(number: float, minimum: float | None, maximum: float | None) -> bool:
    return (minimum is None or number >= minimum) and (maximum is None or number <= maximum)


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
