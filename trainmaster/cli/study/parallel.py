"""The parallel coordinates of a study: one upright axis a parameter, the metric last, one line a trial."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogLocator, MaxNLocator

from trainmaster.cli.study.ink import BEST, FAINT, FEW, INK, PAPER, Ink
from trainmaster.cli.study.study import (
    Choices,
    Interval,
    Parameter,
    Scale,
    Study,
    Trial,
    Value,
    number,
    printable,
    short,
    shown,
)

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

    axes: Axes
    low: float
    high: float
    choices: Mapping[Value, int] | None = None

    def place(self, value: Value | None) -> float:
        """NaN for a value that has no place; what lies outside is drawn at the end."""
        counted = value if self.choices is None or value is None else self.choices.get(value)
        if counted is None or isinstance(counted, str):
            return math.nan
        inside = min(max(counted, self.low), self.high)
        return float((self.axes.transScale + self.axes.transLimits).transform((1.0, inside))[1])


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
    uprights = [_upright(axes, x, each, side="left") for x, each in enumerate(study.parameters)]
    result = _upright(axes, last, metric, side="right")
    if study.best is None:
        result.axes.set_yticks([])
    else:
        _strip(axes, last, ink)
    for trial in study.trials:
        given = [
            upright.place(trial.parameters.get(each.name))
            for upright, each in zip(uprights, study.parameters, strict=True)
        ]
        _line(axes, trial, [*given, result.place(trial.result)], ink)


def _upright(host: Axes, x: int, parameter: Parameter, *, side: Literal["left", "right"]) -> Upright:
    axes = host.twinx()
    axes.set_frame_on(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name == side)
    axes.spines[side].set(position=("data", x), color=FAINT)
    axes.yaxis.set_ticks_position(side)
    upright, ticks = _scaled(axes, parameter)
    axes.set_yticks([*ticks], labels=[*ticks.values()])
    axes.minorticks_off()
    axes.tick_params(pad=7 if side == "left" else 18, labelsize=10)
    for label in axes.get_yticklabels():
        label.set_bbox({"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.8})
    _title(host, x, parameter)
    return upright


def _scaled(axes: Axes, parameter: Parameter) -> tuple[Upright, Mapping[float, str]]:
    """The axis with its limits and scale, and its labels by value."""
    match parameter:
        case Choices(values=values):
            axes.set_ylim(0, max(1, len(values) - 1))
            upright = Upright(
                axes=axes, low=0, high=len(values), choices={value: at for at, value in enumerate(values)}
            )
            thin = math.ceil(len(values) / MOST_TICKS)
            return upright, {at: short(shown(values[at]), LABEL_CHARS) for at in range(0, len(values), thin)}
        case Interval(low=low, high=high, scale=scale):
            if high - low <= NARROW * max(abs(low), abs(high)):
                axes.set_ylim(low - (abs(low) or 1), low + (abs(low) or 1))
                return Upright(axes=axes, low=low, high=high), {low: number(low)}
            axes.set_ylim(low, high)
            if scale is Scale.LOG and low > 0:
                axes.set_yscale("log")
            elif scale is Scale.REVERSE_LOG and low > 0:
                turned = low + high
                axes.set_yscale(
                    "function",
                    functions=(lambda v: -np.log(turned - v), lambda u: turned - np.exp(-u)),
                )
            upright = Upright(axes=axes, low=low, high=high)
            return upright, _labels(upright, logarithmic=scale is Scale.LOG and low > 0)


def _labels(upright: Upright, *, logarithmic: bool) -> dict[float, str]:
    """Both ends, and round numbers between them wherever there is room for a label."""
    low, high = upright.low, upright.high
    locator = (
        LogLocator(subs=(1.0,) if high / low >= 100 else (1.0, 2.0, 5.0), numticks=MOST_TICKS)  # noqa: PLR2004 - two decades
        if logarithmic
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
    broken = printable(title)
    for mark in "_-.":
        broken = broken.replace(mark, f"{mark} ")
    lines = [line.replace(" ", "") for line in wrap(broken, TITLE_CHARS)] or [""]
    if len(lines) > TITLE_LINES:
        lines = [*lines[: TITLE_LINES - 1], short("".join(lines[TITLE_LINES - 1 :]), TITLE_CHARS)]
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
