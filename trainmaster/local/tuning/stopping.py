"""Whether a running trial is worth its time: the median rule, the decay curve and the convex rule.

Source: comments of StudySpec.MedianAutomatedStoppingSpec, DecayCurveAutomatedStoppingSpec and
ConvexAutomatedStoppingSpec, read 2026-11.
For the decay curve the service fits a Gaussian process; here a curve `a + b / (1 + x)` is fitted to the trial
itself, beside the gains of completed trials. For the convex rule the service has an autoregression; here it is
the straight line through all measurements, which overestimates a curve that flattens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, median

MIN_COMPLETED, MIN_POINTS = 3, 3
"""Less than this many completed trials, or measurements of the running one, stop nothing. Our choice."""

DEFAULT_MEASUREMENTS = 5
"""minMeasurementCount of the convex rule where it is not given."""

LIKELY = 2.0
"""Standard errors by which a prediction must miss the best result. Our choice."""


class Rule(Enum):
    """How automated stopping decides."""

    MEDIAN = "medianAutomatedStoppingSpec"
    DECAY_CURVE = "decayCurveStoppingSpec"
    CONVEX = "convexAutomatedStoppingSpec"


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """How a study stops trials. All but the first two are the convex rule's; 0 is left to the rule.

    Attributes:
        by_time: looks at seconds since the trial began instead of steps; the limits count seconds then, too.
        last, first: the end that is predicted for, and where a trial must have come before it is judged.
        measurements: fewer stop no trial, and as many completed trials stop none either.
    """

    rule: Rule
    by_time: bool = False
    last: float = 0
    first: float = 0
    measurements: int = 0


@dataclass(frozen=True, kw_only=True)
class Point:
    """An objective value at `x`: a step, or seconds since the trial began. More is always better here."""

    x: float
    value: float


Curve = Sequence[Point]


def should_stop(stopping: Stopping, running: Curve, completed: Sequence[Curve]) -> bool:
    """Whether the trial with the measurements `running` should end early."""
    known = [curve for curve in completed if curve]
    if not running or len(known) < MIN_COMPLETED:
        return False
    match stopping.rule:
        case Rule.MEDIAN:
            return below_median(running, known)
        case Rule.DECAY_CURVE:
            return unlikely_to_win(running, known)
        case Rule.CONVEX:
            return overestimate_loses(running, known, stopping)


def below_median(running: Curve, completed: Sequence[Curve]) -> bool:
    """Whether the best value so far is strictly worse than the median of the others' running averages up to here."""
    here = max(point.x for point in running)
    reached = [[point.value for point in curve if point.x <= here] for curve in completed]
    averages = [fmean(values) for values in reached if values]
    return len(averages) >= MIN_COMPLETED and max(point.value for point in running) < median(averages)


def unlikely_to_win(running: Curve, completed: Sequence[Curve]) -> bool:
    """Whether the value predicted for the end misses the best final value of the completed trials by far."""
    if len(running) < MIN_POINTS:
        return False
    end = median(curve[-1].x for curve in completed)
    here = running[-1].x
    if here >= end:
        return False
    gains = [_gain(curve, here) for curve in completed]
    expected = fmean(gains)
    spread = (fmean((gain - expected) ** 2 for gain in gains)) ** 0.5
    own, noise = _extrapolated(running, end)
    from_others = running[-1].value + expected
    predicted, error = max(own, from_others), max(spread, noise)
    return bool(predicted + LIKELY * error < max(curve[-1].value for curve in completed))


def overestimate_loses(running: Curve, completed: Sequence[Curve], stopping: Stopping) -> bool:
    """Whether the straight line through all measurements ends below the best value of the completed trials."""
    enough = stopping.measurements or DEFAULT_MEASUREMENTS
    last = stopping.last or median(curve[-1].x for curve in completed)
    first = stopping.first or last / 10
    if len(completed) <= enough or len(running) < enough or running[-1].x <= first:
        return False
    slope, line = _line([point.x for point in running], running)
    if slope == 0:
        return False  # no prediction can be made of a flat curve
    return line(last) < max(point.value for curve in completed for point in curve)


def _gain(curve: Curve, here: float) -> float:
    reached = [point.value for point in curve if point.x <= here]
    return curve[-1].value - (reached[-1] if reached else curve[0].value)


def _extrapolated(curve: Curve, end: float) -> tuple[float, float]:
    """The fitted value at `end` and the fit's standard error."""
    decays = [1 / (1 + max(point.x, 0.0)) for point in curve]
    _, fitted = _line(decays, curve)
    misses = [point.value - fitted(decay) for decay, point in zip(decays, curve, strict=True)]
    error = (sum(miss * miss for miss in misses) / max(1, len(curve) - 2)) ** 0.5
    return fitted(1 / (1 + max(end, 0.0))), error


def _line(places: Sequence[float], curve: Curve) -> tuple[float, Callable[[float], float]]:
    """The least-squares line through the curve's values at `places`: its slope, and its value anywhere."""
    middle, mean = fmean(places), fmean(point.value for point in curve)
    variance = sum((place - middle) ** 2 for place in places)
    slope = 0.0
    if variance:
        pairs = zip(places, curve, strict=True)
        slope = sum((place - middle) * (point.value - mean) for place, point in pairs) / variance
    return slope, lambda place: mean + slope * (place - middle)
