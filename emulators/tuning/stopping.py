"""Whether a running trial is worth its time: the median rule and the decay curve.

Source: comments of StudySpec.MedianAutomatedStoppingSpec and DecayCurveAutomatedStoppingSpec, read 2026-11.
The service fits a Gaussian process; here a curve `a + b / (1 + x)` is fitted to the trial itself,
pulled towards the curves of completed trials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, median

MIN_COMPLETED, MIN_POINTS = 3, 3
"""Less than this many completed trials, or measurements of the running one, stop nothing. Our choice."""

LIKELY = 2.0
"""Standard errors by which a prediction must miss the best result. Our choice."""


class Rule(Enum):
    """How automated stopping decides."""

    NEVER = "no automated stopping"
    MEDIAN = "medianAutomatedStoppingSpec"
    DECAY_CURVE = "decayCurveStoppingSpec"


@dataclass(frozen=True, kw_only=True)
class Point:
    """An objective value at `x`: a step, or seconds since the trial began. More is always better here."""

    x: float
    value: float


Curve = Sequence[Point]


def should_stop(rule: Rule, running: Curve, completed: Sequence[Curve]) -> bool:
    """Whether the trial with the measurements `running` should end early."""
    known = [curve for curve in completed if curve]
    if not running or len(known) < MIN_COMPLETED:
        return False
    match rule:
        case Rule.NEVER:
            return False
        case Rule.MEDIAN:
            return below_median(running, known)
        case Rule.DECAY_CURVE:
            return unlikely_to_win(running, known)


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


def _gain(curve: Curve, here: float) -> float:
    reached = [point.value for point in curve if point.x <= here]
    return curve[-1].value - (reached[-1] if reached else curve[0].value)


def _extrapolated(curve: Curve, end: float) -> tuple[float, float]:
    """The fitted value at `end` and the fit's standard error."""
    decays = [1 / (1 + max(point.x, 0.0)) for point in curve]
    mean_decay, mean_value = fmean(decays), fmean(point.value for point in curve)
    variance = sum((decay - mean_decay) ** 2 for decay in decays)
    pairs = list(zip(decays, curve, strict=True))
    slope = 0.0
    if variance:
        slope = sum((decay - mean_decay) * (point.value - mean_value) for decay, point in pairs) / variance
    misses = [point.value - mean_value - slope * (decay - mean_decay) for decay, point in pairs]
    error = (sum(miss * miss for miss in misses) / max(1, len(curve) - 2)) ** 0.5
    return mean_value + slope * (1 / (1 + max(end, 0.0)) - mean_decay), error
