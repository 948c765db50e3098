"""The median rule, which stops a trial that is not worth its time.

Source: comments of StudySpec.MedianAutomatedStoppingSpec, read 2026-11.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

MIN_COMPLETED = 3
"""With fewer completed trials, no trial is stopped. The project's choice."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """An objective value at `x`: a step, or seconds since the trial began. Higher is better."""

    x: float
    value: float


def is_below_median(running: Sequence[Point], completed: Sequence[Sequence[Point]]) -> bool:
    """Whether the best value so far is strictly worse than the median of the others' running averages up to here."""
    if not running:
        return False
    here = max(point.x for point in running)
    reached = [[point.value for point in curve if point.x <= here] for curve in completed]
    averages = [fmean(values) for values in reached if values]
    return len(averages) >= MIN_COMPLETED and max(point.value for point in running) < median(averages)
