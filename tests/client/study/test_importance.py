"""Importance: what it is for known dependences, and when it is not said."""

import math
import random

import pytest

from tests.cli.study.studies import RATE, study, trial
from tests.narrowing import present
from trainmaster.client.study.importance import MIN_TRIALS, Importance, eta_squared, importances
from trainmaster.client.study.study import Choices, Interval, Parameter, Value
from trainmaster.orchestrator.core.runs.job import TrialState

WORD = Choices(name="word", values=("a", "b", "c"))


def importance(parameter: Parameter, values: list[Value], results: list[float]) -> Importance:
    trials = [
        trial(number, final=result, curve=(), parameters={parameter.name: value})
        for number, (value, result) in enumerate(zip(values, results, strict=True), start=1)
    ]
    (found,) = importances(study(*trials, parameters=(parameter,)))
    return found


def test_four_separated_groups_of_five_have_the_value_that_the_formula_gives_by_hand() -> None:
    groups: list[Value] = [place // 5 for place in range(20)]
    h = 12 / (20 * 21) * 5 * (3**2 + 8**2 + 13**2 + 18**2) - 3 * 21
    assert eta_squared(groups, [*map(float, range(20))]) == pytest.approx((h - 3) / 16)


def test_ties_are_corrected_for() -> None:
    """Two groups without an overlap whose results are all equal within: all of the difference is explained."""
    assert eta_squared([0, 0, 0, 1, 1, 1], [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]) == pytest.approx(1.0)


def test_a_dependence_that_rises_and_falls_is_seen_and_chance_is_near_zero() -> None:
    draw = random.Random(1)
    values = [10 ** draw.uniform(-4, -1) for _ in range(200)]
    bowl = [-abs(math.log10(value) + 2.5) + draw.gauss(0, 0.05) for value in values]
    assert present(importance(RATE, [*values], bowl).value) > 0.6
    assert present(importance(RATE, [*values], [draw.random() for _ in values]).value) < 0.1


def test_words_are_compared_as_groups_and_one_terrible_trial_changes_little() -> None:
    values: list[Value] = ["abc"[place % 3] for place in range(30)]
    results = [("abc".index(str(value))) + place / 1000 for place, value in enumerate(values)]
    before = present(importance(WORD, values, results).value)
    after = present(importance(WORD, values, [*results[:-1], 1e300]).value)
    assert before > 0.85
    assert after == pytest.approx(before, abs=0.05)


def test_the_scale_of_the_parameter_and_of_the_results_does_not_matter() -> None:
    draw = random.Random(2)
    values = [draw.uniform(-4, -1) for _ in range(40)]
    results = [value + draw.gauss(0, 0.5) for value in values]
    line = Interval(name="x", low=-4, high=-1)
    assert (
        importance(line, [*values], results).value
        == importance(RATE, [10**value for value in values], [math.exp(result) for result in results]).value
    )


@pytest.mark.parametrize(
    ("values", "results", "reason"),
    [
        ([0.1] * 19, [float(n) for n in range(19)], f"needs {MIN_TRIALS} trials with a result, has 19"),
        ([0.1] * 20, [float(n) for n in range(20)], "had the same value in every trial"),
        ([n / 100 for n in range(20)], [0.5] * 20, "all results are equal"),
        ([], [], f"needs {MIN_TRIALS} trials with a result, has 0"),
    ],
)
def test_there_is_no_value_without_enough_to_compare(
    values: list[Value], results: list[float], reason: str
) -> None:
    found = importance(RATE, values, results)
    assert (found.value, found.reason) == (None, reason)


def test_many_choices_need_more_trials() -> None:
    many = Choices(name="word", values=tuple(map(str, range(8))))
    values: list[Value] = [str(place % 8) for place in range(39)]
    assert (
        importance(many, values, [float(n) for n in range(39)]).reason
        == "needs 40 trials with a result, has 39"
    )


def test_only_trials_with_the_parameter_and_a_result_count_and_the_most_important_is_first() -> None:
    trials = [
        trial(n, final=n / 50, parameters={"learning_rate": n / 500, "word": "abc"[n % 3]})
        for n in range(1, 41)
    ]
    bad = trial(41, state=TrialState.INFEASIBLE, curve=(), parameters={"learning_rate": 0.1, "word": "a"})
    other = trial(42, final=0.1, parameters={"word": "a"})
    first, second = importances(study(*trials, bad, other, parameters=(WORD, RATE)))
    assert (first.name, first.trials, second.name, second.trials) == ("learning_rate", 40, "word", 41)
    assert present(first.value) > 0.9
