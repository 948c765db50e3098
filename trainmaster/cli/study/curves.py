"""The learning curves of a study: its metric after each step, one line a trial."""

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator

from trainmaster.cli.study.axis import metric_axis
from trainmaster.cli.study.ink import BEST, FAINT, FEW, GREY, INK, PAPER, Ink, Stroke
from trainmaster.cli.study.study import Scale, Study, Trial, TrialState, number, printable, short

MARKS_UP_TO = 40
"""A curve with more points than this has no marks."""
LABEL_GAP = 0.055
"""Between the labels at the ends of curves, as a share of the panel's height."""


_LEADER = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3}


def draw_curves(axes: Axes, study: Study, ink: Ink) -> None:
    """Fill `axes` with one line for each trial that has measured anything."""
    axes.set_xlabel("step, as the trainer counts it")
    axes.set_ylabel(f"{short(printable(study.metric), 40)} ({study.goal})")
    axes.set_title("Learning curves", loc="left", fontweight="bold", color=INK)
    measured = [trial for trial in study.trials if trial.measurements]
    for trial in measured:
        _curve(axes, trial, ink.stroke(trial))
    if not measured:
        said = f"No trial has measured {short(printable(study.metric), 60)}."
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", va="center", color=FAINT)
        axes.set(xticks=[], yticks=[])
        return
    _scale(axes, measured)
    _label_ends(axes, study, measured)
    _legend(axes, study)


def _curve(axes: Axes, trial: Trial, stroke: Stroke) -> None:
    points = sorted((each.step, each.value) for each in trial.measurements)
    (line,) = axes.plot(
        [step for step, _ in points],
        [value for _, value in points],
        color=stroke.colour,
        linewidth=stroke.width,
        linestyle=stroke.dashes,
        alpha=stroke.alpha,
        zorder=stroke.layer,
        marker="o" if len(points) <= MARKS_UP_TO else None,
        markersize=stroke.width + 1.6,
        gid=f"curve-{trial.id}" if trial.id.isdecimal() else None,
    )
    if stroke.colour == BEST:
        line.set_path_effects([withStroke(linewidth=stroke.width + 2.5, foreground=PAPER), Normal()])


def _scale(axes: Axes, measured: Sequence[Trial]) -> None:
    values = [each.value for trial in measured for each in trial.measurements]
    steps = {each.step for trial in measured for each in trial.measurements}
    if metric_axis("", values).scale is Scale.LOG:
        axes.set_yscale("log")
    elif min(values) == max(values):
        axes.set_ylim(values[0] - (abs(values[0]) or 1) * 0.1, values[0] + (abs(values[0]) or 1) * 0.1)
    plain = FuncFormatter(lambda value, _place: number(float(value)))
    axes.yaxis.set_major_formatter(plain)
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(nbins=7))
    axes.xaxis.set_major_formatter(plain)
    axes.xaxis.set_major_locator(_step_places(sorted(steps)))
    if len(steps) == 1:
        axes.set_xlim(min(steps) - 1, min(steps) + 1)
    axes.grid(visible=True)


def _step_places(steps: Sequence[int]) -> Locator:
    """The measured steps themselves where each has room for its label, else round ones."""
    room = (steps[-1] - steps[0]) / FEW
    if len(steps) <= FEW and all(after - before >= room for before, after in pairwise(steps)):
        return FixedLocator(list(steps))
    return MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True)


def _label_ends(axes: Axes, study: Study, measured: Sequence[Trial]) -> None:
    """Each trial's id beside the end of its curve; of many trials only the best one's.

    Curves that reach the last step are labelled in the margin, where their labels can be moved apart.
    """
    shown = measured if len(measured) <= FEW else [trial for trial in measured if trial is study.best]
    ends = {trial.id: max(trial.measurements, key=lambda each: each.step) for trial in shown}
    last = max(each.step for trial in measured for each in trial.measurements)
    wanted = {id_: _height(axes, end.value) for id_, end in ends.items() if end.step == last}
    heights = spread(wanted, LABEL_GAP)
    for id_, end in ends.items():
        is_best = study.best is not None and study.best.id == id_
        in_margin = id_ in heights
        axes.annotate(
            f"trial {short(printable(id_), 10)}" + (" (best)" if is_best else ""),
            xy=(end.step, end.value),
            xytext=(1.012, heights[id_]) if in_margin else (5, 0),
            textcoords=axes.transAxes if in_margin else "offset points",
            va="center",
            color=BEST if is_best else INK,
            fontweight="bold" if is_best else "normal",
            fontsize=10,
            arrowprops=_LEADER if in_margin else None,
        )


def _height(axes: Axes, value: float) -> float:
    """Where `value` lies in the panel, from 0 at its foot to 1 at its head."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """The heights moved apart to at least `gap`, in the same order, as near the wanted ones as a stack allows."""
    order = sorted(heights, key=lambda name: heights[name])
    placed: list[float] = []
    for name in order:
        placed.append(max(heights[name], placed[-1] + gap) if placed else heights[name])
    too_high = max(0.0, placed[-1] - 1) if placed else 0.0
    ceiling = 1.0 if too_high else None
    for index in range(len(placed) - 1, -1, -1):
        if ceiling is None or placed[index] <= ceiling:
            break
        placed[index] = ceiling
        ceiling -= gap
    return dict(zip(order, placed, strict=True))


def _legend(axes: Axes, study: Study) -> None:
    """What cannot be read off the colours; entries only for what is there."""
    kinds = [
        (study.best is not None, "best", {"color": BEST, "linewidth": 2.8}),
        (
            any(trial.state is TrialState.INFEASIBLE for trial in study.trials),
            "infeasible",
            {"color": GREY, "linewidth": 1.2, "linestyle": "--"},
        ),
        (
            any(not trial.state.ended for trial in study.trials),
            "not ended",
            {"color": GREY, "linewidth": 1.2},
        ),
    ]
    handles = [Line2D([], [], label=label, **style) for there, label, style in kinds if there]  # type: ignore[arg-type]  # one dict for several keywords
    if handles:
        axes.legend(
            handles=handles,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=len(handles),
            frameon=False,
            borderaxespad=0.2,
        )
