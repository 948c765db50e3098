"""The parallel coordinates of a study: one upright axis a parameter, the metric last, one line a trial."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import FuncNorm, LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator

from trainmaster.cli.study.ink import BEST, FAINT, FEW, INK, PAPER, Ink
from trainmaster.client.study.study import (
    Choices,
    Interval,
    Parameter,
    Scale,
    Study,
    Trial,
    Value,
    number,
    shown,
)
from trainmaster.client.terminal import one_line

TITLE_CHARS, TITLE_LINES = 14, 3
TITLE_SIZE, LINE_HEIGHT = 10, 12.5  # points
LABEL_CHARS = 14
MOST_TICKS = 8
LABEL_ROOM = 0.06
"""Between two labels, as a share of the axis."""
STRIP_WIDTH, STRIP_STEPS = 0.035, 64
NARROW = 1e-9
"""An interval whose ends differ by less, in proportion, has no width."""
_SCALE_NAMES = {Scale.LINEAR: "", Scale.LOG: "log scale", Scale.REVERSE_LOG: "reverse log scale"}


@dataclass(frozen=True, kw_only=True)
class Upright:
    """One axis: where on it a value lies, from 0 to 1. A choice's value is its number in `choices`."""

    norm: Normalize
    choices: Mapping[Value, int] | None = None

    def place(self, value: Value | None) -> float:
        """NaN for a value that has no place; what lies outside is drawn at the end."""
        counted = value if self.choices is None or value is None else self.choices.get(value)
        return math.nan if counted is None or isinstance(counted, str) else float(self.norm(counted))


def draw_parallel(axes: Axes, study: Study, ink: Ink) -> None:
    """Fill `axes`: x counts the parameters from 0, y goes from 0 to 1 along each one's own scale."""
    metric = Interval(
        name=study.metric,
        low=float(ink.norm.vmin or 0),
        high=float(ink.norm.vmax or 0),
        scale=Scale.LOG if isinstance(ink.norm, LogNorm) else Scale.LINEAR,
    )
    last = len(study.parameters)
    axes.set(xlim=(-0.35, last + 0.35), ylim=(0, 1), xticks=[], yticks=[])
    axes.axis("off")
    lines = max(len(title_lines(each.name)) for each in (*study.parameters, metric))
    pad = 12 + lines * LINE_HEIGHT + 10
    axes.set_title("Parameters and results", loc="left", fontweight="bold", color=INK, pad=pad)
    uprights = [_upright(each) for each in (*study.parameters, metric)]
    for x, (parameter, upright) in enumerate(zip((*study.parameters, metric), uprights, strict=True)):
        axes.vlines(x, 0, 1, color=FAINT, linewidth=0.8, zorder=1)
        _title(axes, x, parameter)
        if x < last or study.best is not None:
            _label(axes, x, upright, _labels(parameter, upright), pad=18 if x == last else -7)
    if study.best is not None:
        _strip(axes, last, ink)
    for trial in study.trials:
        given = [trial.parameters.get(each.name) for each in study.parameters]
        places = [each.place(value) for each, value in zip(uprights, [*given, trial.result], strict=True)]
        _line(axes, trial, places, ink)


def _upright(parameter: Parameter) -> Upright:
    match parameter:
        case Choices(values=values):
            choices = {value: at for at, value in enumerate(values)}
            return Upright(norm=Normalize(0, max(1, len(values) - 1)), choices=choices)
        case Interval(low=low) if _is_narrow(parameter):
            return Upright(norm=Normalize(low - (abs(low) or 1), low + (abs(low) or 1)))
        case Interval(low=low, high=high, scale=Scale.LOG) if low > 0:
            return Upright(norm=LogNorm(low, high, clip=True))
        case Interval(low=low, high=high, scale=Scale.REVERSE_LOG) if low > 0:
            turned = low + high
            both_ways = (lambda v: -np.log(turned - v), lambda u: turned - np.exp(-u))
            return Upright(norm=FuncNorm(both_ways, low, high, clip=True))
        case Interval(low=low, high=high):
            return Upright(norm=Normalize(low, high, clip=True))


def _is_narrow(interval: Interval) -> bool:
    return interval.high - interval.low <= NARROW * max(abs(interval.low), abs(interval.high))


def _label(host: Axes, x: int, upright: Upright, labels: Mapping[float, str], *, pad: float) -> None:
    """Marks on an axis and their labels, to its left where `pad`, in points, is negative."""
    places = {float(upright.norm(value)): said for value, said in labels.items()}
    host.plot([x] * len(places), [*places], "_", color=FAINT, markersize=6, clip_on=False, zorder=1)
    paper = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.8}
    for place, said in places.items():
        host.annotate(
            said, xy=(x, place), xytext=(pad, 0), textcoords="offset points", gid=f"label-{x}", bbox=paper,
            ha="left" if pad > 0 else "right", va="center", fontsize=10, color=INK, zorder=5,
        )  # fmt: skip


def _labels(parameter: Parameter, upright: Upright) -> dict[float, str]:
    """By number: of choices as many as have room; of an interval both ends, and round numbers between them."""
    if isinstance(parameter, Choices):
        values = parameter.values
        thin = math.ceil(len(values) / MOST_TICKS)
        return {at: one_line(shown(values[at]), LABEL_CHARS) for at in range(0, len(values), thin)}
    low, high = parameter.low, parameter.high
    if _is_narrow(parameter):
        return {low: number(low)}
    locator = (
        LogLocator(subs=(1.0,) if high / low >= 100 else (1.0, 2.0, 5.0), numticks=MOST_TICKS)  # noqa: PLR2004 - two decades
        if isinstance(upright.norm, LogNorm)
        else MaxNLocator(nbins=MOST_TICKS - 2)
    )
    with np.errstate(over="ignore"):  # the next power of ten may be infinite
        round_numbers = locator.tick_values(low, high)
    kept: dict[float, float] = {}
    for value in (low, high, *map(float, round_numbers)):
        place = upright.place(value)
        if low <= value <= high and all(abs(place - other) >= LABEL_ROOM for other in kept.values()):
            kept[value] = place
    return {value: number(value) for value in kept}


def _title(host: Axes, x: int, parameter: Parameter) -> None:
    kind = _SCALE_NAMES[parameter.scale] if isinstance(parameter, Interval) else ""
    host.annotate(
        "\n".join(title_lines(parameter.name)), xy=(x, 1), xytext=(0, 12), textcoords="offset points",
        ha="center", va="bottom", fontsize=TITLE_SIZE, fontweight="bold", color=INK,
    )  # fmt: skip
    host.annotate(
        kind, xy=(x, 0), xytext=(0, -10), textcoords="offset points", ha="center", va="top", fontsize=9, color=FAINT
    )  # fmt: skip


def title_lines(title: str) -> list[str]:
    """A parameter's name in a few short lines, broken after underscores, dashes and dots where it has any."""
    broken = one_line(title)
    for mark in "_-.":
        broken = broken.replace(mark, f"{mark} ")
    lines = [line.replace(" ", "") for line in wrap(broken, TITLE_CHARS)] or [""]
    if len(lines) > TITLE_LINES:
        lines = [*lines[: TITLE_LINES - 1], one_line("".join(lines[TITLE_LINES - 1 :]), TITLE_CHARS)]
    return lines


def _strip(host: Axes, x: int, ink: Ink) -> None:
    """The metric's axis shows which colour stands for which result, in place of a colour bar."""
    edges = [step / STRIP_STEPS for step in range(STRIP_STEPS + 1)]
    for low, high in pairwise(edges):
        result = float(ink.norm.inverse((low + high) / 2))
        host.fill_between(
            [x, x + STRIP_WIDTH], low, high, color=ink.colour_of(result), linewidth=0.4, zorder=1.5
        )


def _line(host: Axes, trial: Trial, places: Sequence[float], ink: Ink) -> None:
    """A parameter that does not apply is a gap, for matplotlib draws nothing at NaN."""
    stroke = ink.stroke(trial)
    host.plot(
        range(len(places)),
        places,
        **stroke,
        clip_on=False,
        marker="o",
        markersize=stroke["linewidth"] + (2.4 if stroke["color"] == BEST or len(places) <= FEW else 1.2),
        gid=f"trial-{trial.id}" if trial.id.isdecimal() else None,
    )
