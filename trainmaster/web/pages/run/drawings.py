"""Drawings of a run: its stages and the states of its replicas on lines of time, and its curves, also as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.client.terminal import visible
from trainmaster.client.times import span
from trainmaster.client.watch.curves import POINTS_MAX, Chart, Series
from trainmaster.client.watch.lanes import ENDED, Lane, LaneState, LaneStep
from trainmaster.client.watch.monitor import Monitored
from trainmaster.client.watch.timeline import RunStage

WIDTH = 1000
"""Of a drawing, in its own units."""
LANES_SHOWN = 40
POINTS_OF_CHART = 4000
"""Of all its series together: they are sent again with every change."""
DIGITS = 6
PERIOD_MIN = 3
"""Units that a short state is drawn wide, so that it can be seen."""


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """A stage: when it began, how long it took until the next one, and that time on the line.

    `is_last`: no later stage is passed yet.
    """

    title: str
    at: datetime | None
    detail: str
    took: str
    is_last: bool
    x: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Period:
    """A state of a replica, from `x` on."""

    state: LaneState
    x: int
    width: int


@dataclass(frozen=True, kw_only=True)
class LaneRow:
    """A replica with the periods of its states."""

    lane: Lane
    since: datetime
    periods: tuple[Period, ...]
    events: tuple[LaneStep, ...]
    """The last changes of its state."""


@dataclass(frozen=True, kw_only=True)
class LaneTable:
    """The replicas that are shown, those that still run first chosen, and how many are not."""

    rows: tuple[LaneRow, ...]
    left_out: int
    start: datetime | None


def stage_rows(stages: Sequence[RunStage]) -> list[StageRow]:
    """The stages of a timeline in order, with their durations."""
    passed = [stage.at for stage in stages if stage.at is not None]
    line = _Line(min(passed, default=None), max(passed, default=None))
    rows = []
    for number, stage in enumerate(stages):
        after = next((later.at for later in stages[number + 1 :] if later.at), None)
        end = max(after or stage.at, stage.at) if stage.at else None
        x, width = line.part(stage.at, end) if stage.at and end else (0, 0)
        rows.append(
            StageRow(
                title=stage.title,
                at=stage.at,
                detail=stage.detail,
                took=_took(end - stage.at) if after and stage.at and end else "",
                is_last=stage.at is not None and after is None,
                x=x,
                width=width,
            )
        )
    return rows


def _took(length: timedelta) -> str:
    """A short time in tenths of a second: much of the way takes less than one."""
    return f"{length.total_seconds():.1f}s" if length < timedelta(seconds=10) else span(length)


def lane_table(found: Monitored) -> LaneTable:
    """The replicas; the line of time ends with the last that is known, so that it only moves when something happens."""
    chosen = _chosen_lanes(found.lanes)
    times = [step.at for lane in chosen for step in lane.steps]
    times += [line.at for line in found.log.lines]
    start, end = min((s.at for lane in chosen for s in lane.steps), default=None), max(times, default=None)
    line = _Line(start, end)
    return LaneTable(
        rows=tuple(_lane_row(lane, line) for lane in chosen),
        left_out=len(found.lanes) - len(chosen),
        start=start,
    )


def _chosen_lanes(lanes: Sequence[Lane]) -> Sequence[Lane]:
    if len(lanes) <= LANES_SHOWN:
        return lanes
    active = [lane.name for lane in lanes if lane.state not in ENDED]
    ended = [lane.name for lane in lanes if lane.state in ENDED]
    names = {*[*active, *reversed(ended)][:LANES_SHOWN]}
    return [lane for lane in lanes if lane.name in names]


def _lane_row(lane: Lane, line: "_Line") -> LaneRow:
    ends = [*(step.at for step in lane.steps[1:]), line.end or lane.steps[-1].at]
    periods = []
    for step, end in zip(lane.steps, ends, strict=True):
        x, width = line.part(step.at, end)
        periods.append(Period(state=step.state, x=x, width=width))
    return LaneRow(
        lane=lane,
        since=lane.steps[-1].at,
        periods=tuple(periods),
        events=tuple(step for step in lane.steps if step.detail)[-3:],
    )


class _Line:
    """The time from `start` to `end` on WIDTH units."""

    def __init__(self, start: datetime | None, end: datetime | None) -> None:
        self.start, self.end = start, end

    def part(self, since: datetime, until: datetime) -> tuple[int, int]:
        """Where the part begins, and how wide it is, at least PERIOD_MIN."""
        x = min(self._at(since), WIDTH - PERIOD_MIN)
        return x, max(self._at(until) - x, PERIOD_MIN)

    def _at(self, moment: datetime) -> int:
        if self.start is None or self.end is None or self.end <= self.start:
            return 0
        return round(WIDTH * min(max((moment - self.start) / (self.end - self.start), 0.0), 1.0))


@dataclass(frozen=True, kw_only=True)
class ChartView:
    """One figure: its data for charts.js, and its last values."""

    id: str
    title: str
    x: str
    data: dict[str, Any]
    last: Sequence[tuple[str, str, str]]
    """Of each series: its name, x and y."""


def chart_views(charts: Sequence[Chart]) -> list[ChartView]:
    """A figure for each chart, in their order."""
    return [_view(number, chart) for number, chart in enumerate(charts)]


def _view(number: int, chart: Chart) -> ChartView:
    most = min(POINTS_MAX, POINTS_OF_CHART // len(chart.series))
    name = visible(chart.name)
    series = [
        {"name": visible(each.name), "points": [_point(x, y) for x, y in _thinned_points(each, most)]}
        for each in chart.series
    ]
    return ChartView(
        id=f"curve-{number}",
        title=name,
        x=chart.x,
        data={"x": chart.x, "y": name, "series": series},
        last=[(visible(line.name), f"{line.last[0]:g}", f"{line.last[1]:.4g}") for line in chart.series],
    )


def _thinned_points(series: Series, most: int) -> Sequence[tuple[float, float]]:
    """Every n-th point, and the last."""
    step = -(-len(series.points) // most)
    kept = series.points[::step]
    return kept if kept[-1] == series.last else (*kept, series.last)


def _point(x: float, y: float) -> list[float]:
    return [int(x) if x.is_integer() else x, float(f"{y:.{DIGITS}g}")]
