"""The parallel coordinates of a study: one upright axis a parameter, the metric last, one line a trial."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.patheffects import Normal, withStroke

from trainmaster.cli.study.axis import Axis, NumberAxis, axis_of
from trainmaster.cli.study.ink import BEST, FAINT, FEW, INK, PAPER, Ink, Stroke
from trainmaster.cli.study.study import Scale, Study, Trial, printable, short

Point = tuple[float, float]

TITLE_CHARS, TITLE_LINES = 14, 3
TITLE_SIZE, LINE_HEIGHT = 10, 12.5  # points
STRIP_WIDTH = 0.035
STRIP_STEPS = 64
_SCALE_NAMES = {Scale.LINEAR: "", Scale.LOG: "log scale", Scale.REVERSE_LOG: "reverse log scale"}


def draw_parallel(axes: Axes, study: Study, ink: Ink) -> None:
    """Fill `axes`: x counts the parameters from 0, y goes from 0 to 1 along each one's own scale."""
    scales: list[Axis] = [*(axis_of(parameter) for parameter in study.parameters), ink.scale]
    lines = max(len(title_lines(scale.title)) for scale in scales)
    pad = 12 + lines * LINE_HEIGHT + 10
    axes.set_title("Parameters and results", loc="left", fontweight="bold", color=INK, pad=pad)
    axes.set(xlim=(-0.35, len(scales) - 1 + 0.35), ylim=(-0.04, 1.04), xticks=[], yticks=[])
    axes.axis("off")
    for x, scale in enumerate(scales[:-1]):
        _upright(axes, x, scale)
        _ticks(axes, x, scale, side=-1)
    _upright(axes, len(scales) - 1, ink.scale)
    if study.best is not None:
        _metric_strip(axes, len(scales) - 1, ink)
        _ticks(axes, len(scales) - 1, ink.scale, side=1)
    for trial in study.trials:
        places = [*_parameter_places(trial, scales[:-1]), _metric_place(trial, ink.scale)]
        _line(axes, trial, places, ink.stroke(trial))


def _upright(axes: Axes, x: int, scale: Axis) -> None:
    axes.plot([x, x], [0, 1], color=FAINT, linewidth=1.0, zorder=1)
    name = "\n".join(title_lines(scale.title))
    kind = _SCALE_NAMES[scale.scale] if isinstance(scale, NumberAxis) else ""
    axes.annotate(
        name, xy=(x, 1), xytext=(0, 12), textcoords="offset points", ha="center", va="bottom",
        fontsize=TITLE_SIZE, fontweight="bold", color=INK,
    )  # fmt: skip
    axes.annotate(
        kind, xy=(x, 0), xytext=(0, -10), textcoords="offset points", ha="center", va="top",
        fontsize=9, color=FAINT,
    )  # fmt: skip


def _ticks(axes: Axes, x: int, scale: Axis, *, side: Literal[-1, 1]) -> None:
    """Labels on the left (-1) of the axis, or on its right (1), beyond the strip of colours."""
    for tick in scale.ticks():
        axes.plot([x, x + side * 0.02], [tick.position] * 2, color=FAINT, linewidth=1.0, zorder=1)
        axes.annotate(
            printable(tick.label),
            xy=(x + (STRIP_WIDTH if side > 0 else 0), tick.position),
            xytext=(side * 7, 0),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="center",
            fontsize=10,
            color=INK,
            zorder=5,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.8},
        )


def title_lines(title: str) -> list[str]:
    """A parameter's name in a few short lines, broken after underscores, dashes and dots where it has any."""
    broken = printable(title)
    for mark in "_-.":
        broken = broken.replace(mark, f"{mark} ")
    lines = [line.replace(" ", "") for line in wrap(broken, TITLE_CHARS)] or [""]
    if len(lines) > TITLE_LINES:
        lines = [*lines[: TITLE_LINES - 1], short("".join(lines[TITLE_LINES - 1 :]), TITLE_CHARS)]
    return lines


def _metric_strip(axes: Axes, x: int, ink: Ink) -> None:
    """The metric's axis shows which colour stands for which result, in place of a colour bar."""
    for step in range(STRIP_STEPS):
        low, high = step / STRIP_STEPS, (step + 1) / STRIP_STEPS
        axes.fill_between(
            [x, x + STRIP_WIDTH], low, high, color=ink.colour_at((low + high) / 2), linewidth=0.4, zorder=1.5
        )


def _parameter_places(trial: Trial, scales: Sequence[Axis]) -> Iterator[float | None]:
    for scale in scales:
        value = trial.parameters.get(scale.title)
        yield None if value is None else scale.position(value)


def _metric_place(trial: Trial, scale: NumberAxis) -> float | None:
    return None if trial.result is None else scale.position(trial.result)


def runs(places: Sequence[float | None]) -> Iterator[list[Point]]:
    """The unbroken stretches of a line: where a place is None, the line has a gap."""
    stretch: list[Point] = []
    for x, place in enumerate(places):
        if place is not None:
            stretch.append((x, place))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _line(axes: Axes, trial: Trial, places: Sequence[float | None], stroke: Stroke) -> None:
    for stretch in runs(places):
        (line,) = axes.plot(
            [x for x, _ in stretch],
            [y for _, y in stretch],
            color=stroke.colour,
            linewidth=stroke.width,
            linestyle=stroke.dashes,
            alpha=stroke.alpha,
            zorder=stroke.layer,
            marker="o",
            markersize=stroke.width + (2.4 if stroke.colour == BEST or len(places) <= FEW else 1.2),
            gid=f"trial-{trial.id}" if trial.id.isdecimal() else None,
        )
        if stroke.colour == BEST:
            line.set_path_effects([withStroke(linewidth=stroke.width + 2.5, foreground=PAPER), Normal()])
