"""Drawings of a run: its stages and the states of its replicas on lines of time, and its curves, also as a table."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from trainmaster.client.logs.progress import ReplicaProgress, place_texts
from trainmaster.client.shown.machine_lines import use_texts
from trainmaster.client.terminal import visible
from trainmaster.client.times import span
from trainmaster.client.watch.curves import POINTS_MAX, Chart
from trainmaster.client.watch.lanes import ENDED, Lane
from trainmaster.client.watch.machines import ReplicaSeries
from trainmaster.client.watch.sighting import Sighting
from trainmaster.client.watch.timeline import RunStage
from trainmaster.web.pages.run.monitor import Monitored
from trainmaster.web.study.charts import thinned

WIDTH = 1000
"""Of a drawing, in its own units."""
LANES_SHOWN, METRICS_SHOWN = 40, 6
POINTS_OF_CHART = 4000
"""Of all its series together: they are sent again with every change."""
DIGITS = 6
SPARK_SIZE = 100
PERIOD_MIN = 3
"""Units that a short state is drawn wide, so that it can be seen."""
_Shown = dict[str, Any]  # Any: what a template shows


def stage_rows(stages: Sequence[RunStage], now: datetime | None = None) -> list[_Shown]:
    """The stages of a timeline in order: when each began, how long it took until the next one, and that time on the line.

    The last stage of a live run `is_current`, and has taken that long at `now`.
    """
    passed = [stage.at for stage in stages if stage.at is not None]
    line = _Line(min(passed, default=None), max([*passed, *([now] if now else [])], default=None))
    rows = []
    for number, stage in enumerate(stages):
        after = next((later.at for later in stages[number + 1 :] if later.at), None)
        is_current = stage.at is not None and after is None and now is not None
        after = now if is_current else after
        end = max(after or stage.at, stage.at) if stage.at else None
        x, width = line.part(stage.at, end) if stage.at and end else (0, 0)
        took = _took(end - stage.at) if after and stage.at and end else ""
        row = {"title": stage.title, "at": stage.at, "detail": stage.detail, "took": took}
        rows.append({**row, "is_current": is_current, "x": x, "width": width})
    return rows


def _took(length: timedelta) -> str:
    """A short time in tenths of a second: much of the way takes less than one."""
    return f"{length.total_seconds():.1f}s" if length < timedelta(seconds=10) else span(length)


def steady_time(since: datetime, now: datetime) -> datetime:
    """The present, a little late, for a drawing that began at `since`.

    A watched page is sent again when its drawing changes: once a second at first, later by a hundredth of its width.
    """
    step_s = max(1, int((now - since).total_seconds()) // 100)
    return since + timedelta(seconds=int((now - since).total_seconds()) // step_s * step_s)


def lane_table(found: Monitored, now: datetime | None = None) -> _Shown:
    """The replicas that are shown, those that still run first chosen, and how many are not.

    The line of time ends with the last that is known, and of a live run at `now`.
    """
    chosen = _chosen_lanes(found.lanes)
    times = [step.at for lane in chosen for step in lane.steps]
    times += [line.at for line in found.log.lines] + ([now] if now else [])
    start, end = min((s.at for lane in chosen for s in lane.steps), default=None), max(times, default=None)
    line = _Line(start, end)
    rows = [_lane_row(lane, line, found.seen) for lane in chosen]
    return {"rows": rows, "left_out": len(found.lanes) - len(chosen), "start": start}


def _chosen_lanes(lanes: Sequence[Lane]) -> Sequence[Lane]:
    if len(lanes) <= LANES_SHOWN:
        return lanes
    active = [lane.name for lane in lanes if lane.state not in ENDED]
    ended = [lane.name for lane in lanes if lane.state in ENDED]
    names = {*[*active, *reversed(ended)][:LANES_SHOWN]}
    return [lane for lane in lanes if lane.name in names]


def _lane_row(lane: Lane, line: "_Line", seen: Sighting) -> _Shown:
    """A replica with the periods of its states, the last changes, and the last values of the first METRICS_SHOWN."""
    progress = seen.training.replicas.get(lane.name, ReplicaProgress(replica=""))
    ends = [*(step.at for step in lane.steps[1:]), line.end or lane.steps[-1].at]
    periods = []
    for step, end in zip(lane.steps, ends, strict=True):
        x, width = line.part(step.at, end)
        periods.append({"state": step.state, "x": x, "width": width})
    return {
        "lane": lane,
        "progress": progress,
        "periods": periods,
        "events": [step for step in lane.steps if step.detail][-3:],
        "uses": list(_use_drawings(seen.machines.replicas.get(lane.name, {}))),
        "places": place_texts(progress),
        "metrics": list(islice(progress.metrics.items(), METRICS_SHOWN)),
    }


def _use_drawings(series: ReplicaSeries) -> Iterator[_Shown]:
    """What the replica uses of its machine: the points of a line in a square of 100, and the last value as text."""
    for name, values, last in use_texts(series):
        step = SPARK_SIZE / max(len(values) - 1, 1)
        points = (
            f"{number * step:.0f},{SPARK_SIZE * (1 - value):.0f}" for number, value in enumerate(values)
        )
        yield {"name": name, "last": last, "points": " ".join(points)}


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


def chart_views(charts: Sequence[Chart]) -> list[_Shown]:
    """A figure for each chart, in their order: its data for charts.js, and the last x and y of each series by name."""
    return [_view(number, chart) for number, chart in enumerate(charts)]


def _view(number: int, chart: Chart) -> _Shown:
    most = min(POINTS_MAX, POINTS_OF_CHART // len(chart.series))
    name = visible(chart.name)
    series = [
        {"name": visible(each.name), "points": [_point(x, y) for x, y in thinned(each.points, most)]}
        for each in chart.series
    ]
    return {
        "id": f"curve-{number}",
        "title": name,
        "x": chart.x,
        "data": {"x": chart.x, "y": name, "series": series},
        "last": [(visible(line.name), f"{line.last[0]:g}", f"{line.last[1]:.4g}") for line in chart.series],
    }


def _point(x: float, y: float) -> list[float]:
    return [int(x) if float(x).is_integer() else x, float(f"{y:.{DIGITS}g}")]
