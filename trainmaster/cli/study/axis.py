"""Axes of a figure: where on it a value lies, from 0 to 1, and which places are labelled."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.cli.study.study import Choices, Interval, Parameter, Scale, Value, number, short, shown

MOST_TICKS = 8
LABEL_CHARS = 14
LABEL_ROOM = 0.06
"""Between two labels, as a share of the axis."""
SMALLEST_STEP = 1e-290
"""Below, powers of ten lose their digits in a float."""
LOG_FROM_RATIO = 1000.0
"""A metric whose values span more than this is drawn on a log scale."""


@dataclass(frozen=True, kw_only=True)
class Tick:
    position: float
    label: str


@dataclass(frozen=True, kw_only=True)
class NumberAxis:
    """A range of numbers; a log scale needs `low` above 0, else the axis is linear."""

    title: str
    low: float
    high: float
    scale: Scale = Scale.LINEAR

    def position(self, value: Value) -> float | None:
        """From 0 at `low` to 1 at `high`; None for a word. What lies outside is drawn at the end."""
        if isinstance(value, str):
            return None
        if self.high <= self.low:
            return 0.5
        if value >= self.high:
            return 1.0
        inside = max(value, self.low)
        if self.scale is Scale.LINEAR or self.low <= 0:
            return (inside - self.low) / (self.high - self.low)
        if self.scale is Scale.LOG:
            return self._log_position(inside)
        return 1 - self._log_position(max(self.low, self.high - (inside - self.low)))

    def _log_position(self, value: float) -> float:
        span = math.log(self.high) - math.log(self.low)  # the quotient may be too large for a float
        if not span:  # ends so near that their logarithms are the same float
            return 0.5
        return (math.log(value) - math.log(self.low)) / span

    def ticks(self) -> tuple[Tick, ...]:
        """Both ends, and round numbers between them wherever there is room for a label."""
        logarithmic = self.scale is Scale.LOG and self.low > 0
        found = log_ticks(self.low, self.high) if logarithmic else linear_ticks(self.low, self.high)
        kept: list[Tick] = []
        for value in (self.low, self.high, *found):
            place = self.position(value)
            if place is not None and all(abs(place - tick.position) >= LABEL_ROOM for tick in kept):
                kept.append(Tick(position=place, label=number(value)))
        return tuple(sorted(kept, key=lambda tick: tick.position))


@dataclass(frozen=True, kw_only=True)
class ChoiceAxis:
    """Some numbers or words, equally far apart: neighbours stay readable however near their values are."""

    title: str
    values: tuple[Value, ...]

    def position(self, value: Value) -> float | None:
        """None for a value that is no choice."""
        if value not in self.values:
            return None
        return self.values.index(value) / (len(self.values) - 1) if len(self.values) > 1 else 0.5

    def ticks(self) -> tuple[Tick, ...]:
        """Every choice, or evenly thinned out to about MOST_TICKS."""
        step = math.ceil(len(self.values) / MOST_TICKS)
        return tuple(
            Tick(position=self.position(value) or 0.0, label=short(shown(value), LABEL_CHARS))
            for value in self.values[::step]
        )


Axis = NumberAxis | ChoiceAxis


def axis_of(parameter: Parameter) -> Axis:
    match parameter:
        case Interval():
            return NumberAxis(
                title=parameter.name, low=parameter.low, high=parameter.high, scale=parameter.scale
            )
        case Choices():
            return ChoiceAxis(title=parameter.name, values=parameter.values)


def metric_axis(title: str, values: Sequence[float]) -> NumberAxis:
    """From the least to the greatest of `values`, which are finite; from 0 to 1 where there are none."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    scale = Scale.LOG if low > 0 and high / low > LOG_FROM_RATIO else Scale.LINEAR
    return NumberAxis(title=title, low=low, high=high, scale=scale)


def linear_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / (MOST_TICKS - 2)
    if rough < SMALLEST_STEP:
        return [low, high]
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    found = [round(index * step, 12 - math.floor(math.log10(step))) for index in range(first, last + 1)]
    return found if len(found) > 1 else [low, high]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; in a narrow range their multiples too."""
    if high <= low:
        return [low]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        found = [m * 10.0**power for power in powers for m in multiples]
        inside = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(inside) > 2:  # noqa: PLR2004 - two alone do not show that the scale is no linear one
            return inside[:: math.ceil(len(inside) / MOST_TICKS)]
    return [low, high]
