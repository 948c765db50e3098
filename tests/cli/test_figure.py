"""The figure shows every trial, and the same study always gives the same picture."""

import io
import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from trainmaster.cli.study.figure import png_of, study_figure, svg_of
from trainmaster.cli.study.ink import BEST, GREY, spans_decades
from trainmaster.cli.study.parallel import title_lines
from trainmaster.client.study.study import Choices, Interval, Measurement, Scale, Study
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState

from .studies import RATE, UNITS, many, rising, study, trial

NASTY = "<script>alert('$x^$ & \"q\"')</script>\x00\N{CJK UNIFIED IDEOGRAPH-65E5}"


def lines(axes: Axes, prefix: str) -> dict[str, list[object]]:
    """By trial id the colours of its lines."""
    found: dict[str, list[object]] = {}
    for line in axes.lines:
        name = line.get_gid() or ""
        if name.startswith(prefix):
            found.setdefault(name.removeprefix(prefix), []).append(line.get_color())
    return found


def panels(drawn: Study) -> tuple[Axes, Axes]:
    above, below, *_uprights = study_figure(drawn).axes
    return above, below


def test_every_trial_has_a_curve_and_a_line_and_the_best_stands_out() -> None:
    above, below = panels(study(trial(1, final=0.7), trial(2, final=0.9), trial(3, final=0.8)))
    for axes, prefix in ((above, "curve-"), (below, "trial-")):
        found = lines(axes, prefix)
        assert found.keys() == {"1", "2", "3"}
        assert [name for name, colours in found.items() if BEST in colours] == ["2"]


def test_the_least_is_best_where_the_goal_is_to_minimize() -> None:
    drawn = study(trial(1, final=0.7), trial(2, final=0.9), metric="loss", goal=Goal.MINIMIZE)
    above, _ = panels(drawn)
    assert lines(above, "curve-")["1"] == [BEST]


def test_a_curve_has_every_measurement() -> None:
    above, _ = panels(study(trial(1, final=0.7)))
    (curve,) = [line for line in above.lines if line.get_gid() == "curve-1"]
    assert [tuple(point) for point in curve.get_xydata().tolist()] == [  # type: ignore[union-attr]  # an array of points
        (step, pytest.approx(value)) for step, value in enumerate(rising(0.7), start=1)
    ]


def test_an_infeasible_trial_is_dashed_and_grey_and_has_no_place_on_the_metric() -> None:
    bad = trial(1, state=TrialState.INFEASIBLE, curve=(0.1, 0.2), reason="out of memory")
    above, below = panels(study(bad, trial(2, final=0.5)))
    for axes, name in ((above, "curve-1"), (below, "trial-1")):
        (line,) = [line for line in axes.lines if line.get_gid() == name]
        assert (line.get_color(), line.get_linestyle()) == (GREY, "--")
    assert np.isnan(heights(below, "trial-1")).tolist() == [False, False, True]


def test_a_conditional_parameter_that_does_not_apply_is_a_gap() -> None:
    parameters = (RATE, Interval(name="beta", low=0, high=1), UNITS)
    drawn = study(
        trial(1, final=0.5, parameters={"learning_rate": 0.1, "num_units": 64.0}), parameters=parameters
    )
    _, below = panels(drawn)
    assert np.isnan(heights(below, "trial-1")).tolist() == [False, True, False, False]


def wide() -> Study:
    """Fifty trials of twelve parameters with long names."""
    names = [f"optimizer.layer_{n}.learning_rate_multiplier" for n in range(12)]
    parameters = tuple(Interval(name=name, low=0, high=100000) for name in names)
    values = [{name: float((7919 * n * k) % 100000) for k, name in enumerate(names, 1)} for n in range(50)]
    return study(
        *(trial(n + 1, final=n / 50, parameters=values[n]) for n in range(50)), parameters=parameters
    )


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that touch, of those that are drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]  # matplotlib's own gap
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]  # as above
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    drawn = [text for text in texts if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in drawn]
    inside = [(said, box) for said, box in boxes if figure.bbox.overlaps(box)]
    return [
        (said, other)
        for place, (said, box) in enumerate(inside)
        for other, second in inside[place + 1 :]
        if box.overlaps(second) and said != other
    ]


@pytest.mark.parametrize(
    "drawn",
    [many(1), many(12), many(50), wide(), study(trial(1, curve=()))],
    ids=["one trial", "twelve trials", "fifty trials", "twelve parameters", "no measurement"],
)
def test_no_two_labels_overlap_and_none_is_cut_off(drawn: Study) -> None:
    figure = study_figure(drawn)
    assert overlaps(figure) == []
    tight = figure.get_tightbbox()
    assert tight.x0 >= 0
    assert tight.y0 >= 0
    assert tight.x1 <= figure.get_figwidth()
    assert tight.y1 <= figure.get_figheight()


def test_a_study_without_any_measurement_says_so() -> None:
    above, below = panels(study(trial(1, state=TrialState.INFEASIBLE, curve=())))
    assert "No trial has reported accuracy." in [text.get_text() for text in above.texts]
    assert lines(above, "curve-") == {}
    assert lines(below, "trial-").keys() == {"1"}


def test_names_and_values_are_text_whatever_they_hold() -> None:
    drawn = study(
        trial(1, final=0.5, parameters={NASTY: NASTY}),
        parameters=(Choices(name=NASTY, values=(NASTY, "b")),),
        metric=NASTY,
        title=NASTY,
    )
    image = ET.fromstring(svg_of(drawn))
    assert not [element for element in image.iter() if element.tag.endswith("script")]
    assert "<script>" in "".join(image.itertext())
    assert Image.open(io.BytesIO(png_of(drawn))).size[0] > 1600


def test_the_picture_refers_to_nothing_outside_itself_and_is_the_same_each_time() -> None:
    drawn = many(3)
    first = svg_of(drawn)
    assert first == svg_of(drawn)
    for element in ET.fromstring(first).iter():
        for name, value in element.attrib.items():
            assert not name.endswith("href") or value.startswith("#")
    assert "url(http" not in first


def test_steps_that_were_measured_are_labelled_where_there_is_room() -> None:
    few = trial(1, final=0.9)
    (above, _) = panels(
        study(replace(few, measurements=tuple(Measurement(value=0.1 * n, step=8 * n) for n in range(1, 6))))
    )
    assert above.get_xticks().tolist() == [8, 16, 24, 32, 40]
    uneven = tuple(Measurement(value=0.1, step=step) for step in (1, 2, 1000))
    (above, _) = panels(study(replace(few, measurements=uneven)))
    assert 2 not in above.get_xticks().tolist()


def test_long_names_take_a_few_short_lines() -> None:
    lines_of = title_lines("optimizer.layer_0.learning_rate_multiplier_of_the_backbone")
    assert len(lines_of) == 3
    assert max(map(len, lines_of)) <= 14
    assert title_lines("momentum") == ["momentum"]


def heights(below: Axes, name: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The places of a trial's line on the axes of the parameters and the metric, from 0 to 1."""
    (line,) = [line for line in below.lines if line.get_gid() == name]
    return np.asarray(line.get_ydata(), dtype=float)


@pytest.mark.parametrize(
    ("scale", "value", "place"),
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
def test_a_number_lies_where_its_scale_says(scale: Scale, value: float, place: float) -> None:
    drawn = study(
        trial(1, final=0.5, parameters={"x": value}),
        parameters=(Interval(name="x", low=0.01, high=1.0, scale=scale),),
    )
    assert heights(panels(drawn)[1], "trial-1")[0] == pytest.approx(place)


def labels_of_x(figure: Figure) -> list[str]:
    """Of the first parameter's axis."""
    return [text.get_text() for text in figure.axes[1].texts if text.get_gid() == "label-0"]


@pytest.mark.parametrize(
    ("low", "high", "scale", "labels"),
    [
        (1e-4, 0.1, Scale.LOG, ["0.0001", "0.001", "0.01", "0.1"]),
        (3.0, 3.0, Scale.LINEAR, ["3"]),
        (-5e-324, 0.0, Scale.LINEAR, ["-4.941e-324"]),
        (1e6, math.nextafter(1e6, math.inf), Scale.LOG, ["1e6"]),
        (-1e300, 1e300, Scale.LINEAR, ["-1e300", "0", "1e300"]),
        (1e-290, 1e290, Scale.LOG, ["1e-290", "1e290"]),
        (0.1, 97.0, Scale.REVERSE_LOG, ["0.1", "97"]),
    ],
)
def test_both_ends_of_any_range_are_labelled_and_no_two_labels_touch(
    low: float, high: float, scale: Scale, labels: list[str]
) -> None:
    drawn = study(
        trial(1, final=0.5, parameters={"x": low}),
        parameters=(Interval(name="x", low=low, high=high, scale=scale),),
    )
    figure = study_figure(drawn)
    assert set(labels) <= set(labels_of_x(figure))
    assert overlaps(figure) == []


def test_choices_are_equally_far_apart_and_their_labels_thinned_out_when_there_are_many() -> None:
    places = [
        heights(panels(study(trial(1, final=0.5, parameters={"num_units": units})))[1], "trial-1")[1]
        for units in (64.0, 128.0, 512.0, "none")
    ]
    assert places[:3] == [0, 0.5, 1]
    assert math.isnan(places[3])
    many_words = Choices(name="x", values=tuple(float(n) for n in range(1000)))
    assert len(labels_of_x(study_figure(study(trial(1, final=0.5), parameters=(many_words,))))) <= 8


def test_a_metric_that_spans_decades_is_drawn_on_a_log_scale() -> None:
    def scale(*values: float) -> str:
        return panels(study(*(trial(n, final=value) for n, value in enumerate(values, 1))))[0].get_yscale()

    assert (scale(1e4, 0.1), scale(0.5, 0.9)) == ("log", "linear")
    assert not spans_decades([1e4, 0.0])
    assert not spans_decades([])
