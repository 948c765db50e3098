"""The learning curves of a study: its metric after each step, one line a trial."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator

from trainmaster.cli.study.ink import BEST, FAINT, FEW, GREY, INK, Ink, spans_decades
from trainmaster.client.study.study import Study, Trial, number
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.runs.job import TrialState

MARKS_UP_TO = 40
"""A curve with more points than this has no marks."""


def draw_curves(axes: Axes, study: Study, ink: Ink) -> None:
    """Fill `axes` with one line for each trial that has measured anything."""
    axes.set_xlabel("step, as the trainer counts it")
    axes.set_ylabel(f"{one_line(study.metric, 40)} ({study.goal})")
    axes.set_title("Learning curves", loc="left", fontweight="bold", color=INK)
    measured = [trial for trial in study.trials if trial.measurements]
    if not measured:
        said = f"No trial has reported {one_line(study.metric, 60)}."
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", va="center", color=FAINT)
        axes.set(xticks=[], yticks=[])
        return
    curves = [_curve(axes, trial, ink) for trial in measured]
    _scale(axes, measured)
    best = [curve for curve in curves if curve.get_color() == BEST]
    axes.legend(
        handles=[*(curves if len(curves) <= FEW else best), *_kinds(study)],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        fontsize=10,
    )


def _curve(axes: Axes, trial: Trial, ink: Ink) -> Line2D:
    points = sorted((each.step, each.value) for each in trial.measurements)
    steps, values = zip(*points, strict=True)
    stroke = ink.stroke(trial)
    (line,) = axes.plot(
        steps,
        values,
        **stroke,
        marker="o" if len(points) <= MARKS_UP_TO else None,
        markersize=stroke["linewidth"] + 1.6,
        label=f"trial {one_line(trial.id, 10)}{' (best)' if trial is ink.study.best else ''}",
        gid=f"curve-{trial.id}" if trial.id.isdecimal() else None,
    )
    return line


def _scale(axes: Axes, measured: Sequence[Trial]) -> None:
    values = [each.value for trial in measured for each in trial.measurements]
    steps = {each.step for trial in measured for each in trial.measurements}
    plain = FuncFormatter(lambda value, _place: number(float(value)))
    if spans_decades(values):
        axes.set_yscale("log")
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=7))
    if min(values) == max(values):
        axes.set_ylim(values[0] - (abs(values[0]) or 1) * 0.1, values[0] + (abs(values[0]) or 1) * 0.1)
    if len(steps) == 1:
        axes.set_xlim(min(steps) - 1, min(steps) + 1)
    axes.xaxis.set_major_locator(_step_places(sorted(steps)))
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.grid(visible=True)


def _step_places(steps: Sequence[int]) -> Locator:
    """The measured steps themselves where each has room for its label, else round ones."""
    room = (steps[-1] - steps[0]) / FEW
    if len(steps) <= FEW and all(after - before >= room for before, after in pairwise(steps)):
        return FixedLocator(list(steps))
    return MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True)


def _kinds(study: Study) -> list[Line2D]:
    """The legend of what is neither better nor worse; entries only for what is there."""
    found = []
    if any(trial.state is TrialState.INFEASIBLE for trial in study.trials):
        found.append(Line2D([], [], color=GREY, linewidth=1.2, linestyle="--", label="infeasible"))
    if any(not trial.state.ended for trial in study.trials):
        found.append(Line2D([], [], color=GREY, linewidth=1.2, label="not ended"))
    return found
