"""Curves from the lines of a log, bounded and thinned."""

import math
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.test_lanes import WORKER, event, line
from trainmaster.client.watch.curves import CHARTS_MAX, POINTS_MAX, SERIES_MAX, Curves, Thinned


def step(number: int, loss: object = 1.0) -> dict[str, Any]:
    return event("train_progress", epoch=1, epochs=1, step=number, steps_per_epoch=10**6, loss=loss)


def test_a_series_starts_at_its_first_point_and_ends_with_its_last_however_many_there_are() -> None:
    thinned = Thinned(most=50)
    for x in range(10_000):
        thinned.add(x, -x)
    points = list(thinned.points)
    assert [points[0], points[-1]] == [(0, 0), (9999, -9999)]
    assert 25 <= len(points) <= 50
    gaps = {after[0] - before[0] for before, after in pairwise(points[:-1])}
    assert len(gaps) == 1


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300, unique=True), st.randoms())
def test_the_order_of_lines_does_not_change_the_curve(places: list[int], chance: random.Random) -> None:
    def curve(order: list[int]) -> tuple[tuple[float, float], ...]:
        thinned = Thinned(most=20)
        for x in order:
            thinned.add(x, x / 2)
        return thinned.points

    assert curve(places) == curve(chance.sample(places, len(places)))
    assert len(curve(places)) <= 20


def test_a_repeated_step_after_a_restart_replaces_the_first_one() -> None:
    curves = Curves()
    curves.add([line(1, step(1, 3.0)), line(2, step(2, 2.0)), line(3, step(2, 9.0))])
    (chart,) = curves.charts
    assert chart.series[0].points == ((1, 3.0), (2, 9.0))


@pytest.mark.parametrize(("first", "places"), [(1, [1, 2, 3, 4, 5]), (0, [0, 1, 2, 3, 4])])
def test_epochs_that_begin_again_continue_behind_the_last(first: int, places: list[int]) -> None:
    curves = Curves()
    of_folds = [first, first, first + 1, first + 2, first, first + 1]
    curves.add(line(n, {"epoch": epoch, "loss": n}) for n, epoch in enumerate(of_folds))
    (chart,) = curves.charts
    assert chart.series[0].points == tuple(zip(places, range(1, 6), strict=True))


def test_each_metric_of_an_epoch_has_a_chart_with_a_series_for_each_replica() -> None:
    curves = Curves()
    epoch = event("epoch_finished", epoch=1, metrics={"val_loss": 0.5, "val_accuracy": 0.9})
    curves.add([line(1, step(1)), line(2, epoch), line(2, epoch, WORKER)])
    assert [(chart.name, chart.x, len(chart.series)) for chart in curves.charts] == [
        ("loss", "step", 1),
        ("val_loss", "epoch", 2),
        ("val_accuracy", "epoch", 2),
    ]


def test_values_that_are_not_numbers_give_no_points() -> None:
    curves = Curves()
    hostile = [math.nan, math.inf, -math.inf, "1", None, True, [], {}, 10**400]
    curves.add([line(1, step(number, value)) for number, value in enumerate(hostile)])
    curves.add([line(1, event("epoch_finished", epoch=value, metrics={"m": 1})) for value in hostile])
    curves.add([line(1, event("epoch_finished", epoch=1, metrics=value)) for value in hostile])
    assert curves.charts == []


def test_charts_series_and_points_are_bounded() -> None:
    curves = Curves()
    many = {f"metric {number}": 1.0 for number in range(100)}
    curves.add(
        [line(1, event("epoch_finished", epoch=1, metrics=many), f"workerpool1-{n}") for n in range(50)]
    )
    curves.add([line(1, step(number)) for number in range(3 * POINTS_MAX)])
    assert len(curves.charts) == CHARTS_MAX
    assert {len(chart.series) for chart in curves.charts} == {SERIES_MAX}
    assert all(len(each.points) <= POINTS_MAX for chart in curves.charts for each in chart.series)
