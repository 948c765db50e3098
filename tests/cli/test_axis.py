"""A value has one place on its axis, and labels never touch."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trainmaster.cli.study.axis import LABEL_ROOM, ChoiceAxis, NumberAxis, axis_of, metric_axis
from trainmaster.cli.study.study import Choices, Scale

POSITIVE = st.floats(1e-6, 1e6)


@pytest.mark.parametrize(
    ("scale", "value", "position"),
    [
        (Scale.LINEAR, 0.01, 0.0),
        (Scale.LINEAR, 0.505, 0.5),
        (Scale.LOG, 0.1, 0.5),
        (Scale.LOG, 1.0, 1.0),
        (Scale.REVERSE_LOG, 0.91, 0.5),  # 1.01 - 0.91 is the middle of 0.01 and 1 on a log scale
        (Scale.REVERSE_LOG, 1.0, 1.0),
        (Scale.LOG, 7.0, 1.0),
    ],
)
def test_a_number_lies_where_its_scale_says(scale: Scale, value: float, position: float) -> None:
    axis = NumberAxis(title="x", low=0.01, high=1.0, scale=scale)
    assert axis.position(value) == pytest.approx(position)


@given(low=POSITIVE, high=POSITIVE, share=st.floats(0, 1), scale=st.sampled_from(Scale))
def test_every_value_between_the_ends_lies_between_them(
    low: float, high: float, share: float, scale: Scale
) -> None:
    assume(low < high)
    axis = NumberAxis(title="x", low=low, high=high, scale=scale)
    position = axis.position(low + share * (high - low))
    assert position is not None
    assert -1e-9 <= position <= 1 + 1e-9


def test_ends_that_are_next_to_each_other_have_no_width_to_lie_in() -> None:
    axis = NumberAxis(title="x", low=1e6, high=math.nextafter(1e6, math.inf), scale=Scale.LOG)
    assert [axis.position(value) for value in (axis.low, axis.high)] == [0.5, 1.0]


@given(low=st.floats(-1e6, 1e6), high=st.floats(-1e6, 1e6), scale=st.sampled_from(Scale))
def test_both_ends_are_labelled_and_no_two_labels_touch(low: float, high: float, scale: Scale) -> None:
    assume(high - low > 1e-6 * max(abs(low), abs(high)))
    ticks = NumberAxis(title="x", low=low, high=high, scale=scale).ticks()
    positions = [tick.position for tick in ticks]
    assert positions[0] == 0
    assert positions[-1] == pytest.approx(1)
    assert all(after - before >= LABEL_ROOM * (1 - 1e-9) for before, after in pairwise(positions))


def test_a_log_axis_is_labelled_with_powers_of_ten() -> None:
    ticks = NumberAxis(title="x", low=1e-4, high=0.1, scale=Scale.LOG).ticks()
    assert [tick.label for tick in ticks] == ["0.0001", "0.001", "0.01", "0.1"]


def test_the_narrowest_range_there_is_has_its_ends() -> None:
    ticks = NumberAxis(title="x", low=-5e-324, high=0.0).ticks()
    assert [tick.position for tick in ticks] == [0, 1]


def test_a_range_of_one_value_has_one_label() -> None:
    (tick,) = NumberAxis(title="x", low=3, high=3).ticks()
    assert (tick.position, tick.label) == (0.5, "3")


def test_choices_are_equally_far_apart_and_thinned_out_when_there_are_many() -> None:
    axis = axis_of(Choices(name="units", values=(64.0, 128.0, 512.0)))
    assert [axis.position(value) for value in (64.0, 128.0, 512.0, "none")] == [0, 0.5, 1, None]
    many = ChoiceAxis(title="x", values=tuple(float(n) for n in range(1000)))
    assert len(many.ticks()) <= 8


def test_a_metric_that_spans_decades_is_drawn_on_a_log_scale() -> None:
    assert metric_axis("loss", [1e4, 0.1]).scale is Scale.LOG
    assert metric_axis("loss", [1e4, 0.0]).scale is Scale.LINEAR
    assert metric_axis("loss", []).ticks()
