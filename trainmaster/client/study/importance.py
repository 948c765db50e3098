"""The importance of each parameter of a study: its share of the differences between results.

It is the eta squared of the Kruskal-Wallis test: a parameter's share of the differences between results, by
ranks. It takes words and numbers, and needs no fitted forest, which would be unstable for the twenty to fifty
trials of a usual study.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from trainmaster.client.study.study import Choices, Parameter, Study, Value

MIN_TRIALS = 20
"""With fewer, a parameter without any influence often gets more than 0.3 by chance."""
PER_GROUP, GROUPS_MAX = 5, 6
"""Groups have five trials on average, or more; numbers are divided into at most six groups."""


@dataclass(frozen=True, kw_only=True)
class Importance:
    """The share of the differences between results, 0 to 1, that one parameter explains alone.

    `value` is None where it is unknown; `reason` says why. `trials` have the parameter and a result.
    """

    name: str
    trials: int
    value: float | None = None
    reason: str = ""


def importances(study: Study) -> list[Importance]:
    """One for each parameter, the most important first, those without a value last."""
    found = [_importance(parameter, study) for parameter in study.parameters]
    return sorted(found, key=lambda each: -1.0 if each.value is None else each.value, reverse=True)


def _importance(parameter: Parameter, study: Study) -> Importance:
    name = parameter.name
    trials = [trial for trial in study.trials if trial.result is not None and name in trial.parameters]
    groups = _groups(parameter, [trial.parameters[name] for trial in trials])
    needed = max(MIN_TRIALS, PER_GROUP * len(set(groups)))
    if len(trials) < needed:
        reason = f"needs {needed} trials with a result, has {len(trials)}"
        return Importance(name=name, trials=len(trials), reason=reason)
    if len(set(groups)) == 1:
        return Importance(name=name, trials=len(trials), reason="had the same value in every trial")
    value = eta_squared(groups, [trial.result for trial in trials if trial.result is not None])
    reason = "" if value is not None else "all results are equal"
    return Importance(name=name, trials=len(trials), value=value, reason=reason)


def eta_squared(groups: Sequence[Value], results: Sequence[float]) -> float | None:
    """The eta squared of the Kruskal-Wallis test, (H - k + 1) / (n - k), not below 0; None if all results are equal.

    It compares ranks, so it sees any shape of dependence, is the same on every scale of the results, and is not
    dominated by one bad trial; by chance it is 0 on average, however many groups there are. It does not see what only
    several parameters together explain.

    Args:
        groups: which of k groups, at least two, each of the n > k trials belongs to.
        results: of each trial.

    Source: Tomczak and Tomczak (2014), The need to report effect size estimates revisited, Trends in Sport Sciences
    1(21), 19-25. H with its correction for ties: Kruskal and Wallis (1952), Use of ranks in one-criterion variance
    analysis, Journal of the American Statistical Association 47, 583-621.
    """
    below, equal = _counts_below(results), Counter(results)
    ranks = [below[result] + (equal[result] + 1) / 2 for result in results]
    count, mean = len(ranks), (len(ranks) + 1) / 2
    total = sum((rank - mean) ** 2 for rank in ranks)
    if not total:
        return None
    sizes, sums = Counter(groups), Counter[Value]()
    for group, rank in zip(groups, ranks, strict=True):
        sums[group] += rank - mean  # type: ignore[assignment]  # a Counter may add up any numbers
    between = sum(sums[group] ** 2 / size for group, size in sizes.items())
    h = (count - 1) * between / total
    return min(1.0, max(0.0, (h - len(sizes) + 1) / (count - len(sizes))))


def _counts_below(values: Sequence[float]) -> Mapping[float, int]:
    """How many values are less than each."""
    counts = sorted(Counter(values).items())
    before = accumulate((count for _, count in counts), initial=0)
    return {value: less for (value, _), less in zip(counts, before, strict=False)}


def _groups(parameter: Parameter, values: Sequence[Value]) -> list[Value]:
    """The choice itself; of numbers in an interval, which part of the trials by their order. Equal values stay together."""
    numbers = [value for value in values if not isinstance(value, str)]
    if isinstance(parameter, Choices) or len(numbers) < len(values):
        return list(values)
    parts = min(GROUPS_MAX, max(2, len(numbers) // PER_GROUP))
    below = _counts_below(numbers)
    return [below[value] * parts // len(numbers) for value in numbers]
