"""Loss and metrics by step or epoch, from the lines of a run's log, thinned to what a chart can show."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.progress import REPLICAS_MAX, Place
from trainmaster.client.logs.report import MOST, THROUGHPUT

POINTS_MAX = 2000
"""Of a series."""
SERIES_MAX = 12
"""Of a chart: readers cannot distinguish more."""
CHARTS_MAX = 8

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values of one replica; `points` are in the order of x, at most POINTS_MAX."""

    name: str
    points: tuple[Point, ...]

    @property
    def last(self) -> Point:
        return self.points[-1]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One quantity, for example `loss`, by `step` or by `epoch`."""

    name: str
    x: str
    series: tuple[Series, ...]


class Thinned:
    """Points by x, at most POINTS_MAX of them, whatever their number and order.

    The axis is divided into equal steps, and the first point of each is kept, and the last of all. If there are too many,
    the steps become twice as long. So the same points give the same curve in any order, except that of two points
    with one x the later is kept.
    """

    def __init__(self, most: int = POINTS_MAX) -> None:
        self._most = most
        self._step = 1.0
        self._kept: dict[int, Point] = {}
        self._last: Point | None = None
        self._begun, self._behind = math.inf, 0.0

    def add_in_turn(self, x: float, y: float) -> None:
        """As `add`, but points that begin again, as of the next fold, continue behind the last."""
        if self._last is not None and x <= self._begun < self._last[0] - self._behind:
            self._behind, self._begun = self._last[0] + (x <= 0), x
        self._begun = min(self._begun, x)
        self.add(self._behind + x, y)

    def add(self, x: float, y: float) -> None:
        if self._last is None or x >= self._last[0]:
            self._last = (x, y)
        self._keep((x, y))
        while len(self._kept) >= self._most:
            self._step *= 2
            before, self._kept = self._kept.values(), {}
            for point in before:
                self._keep(point)

    def _keep(self, point: Point) -> None:
        place = math.floor(point[0] / self._step)
        if place not in self._kept or point[0] <= self._kept[place][0]:
            self._kept[place] = point

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(sorted({*self._kept.values(), *filter(None, [self._last])}))


class Curves:
    """Collects the curves of a run from its log, in bounded memory."""

    def __init__(self) -> None:
        self._charts: dict[tuple[str, str], dict[str, Thinned]] = {}
        self._places: dict[str, Place] = {}

    def add(self, lines: Iterable[LogLine]) -> None:
        """Continue with these lines of the log."""
        for line in lines:
            for report in line.reports:
                place = self._places.get(line.lane, Place()).place_after(report)
                if line.lane in self._places or len(self._places) < REPLICAS_MAX:
                    self._places[line.lane] = place
                if (x := place.x_of(report)) is not None:
                    for name, value in report.metrics.items():
                        self.add_point(name, x, line.lane, value, in_turn=True)

    @property
    def charts(self) -> Sequence[Chart]:
        """The loss first; each chart with its first SERIES_MAX series by name."""
        charts = []
        for (name, x), lanes in self._charts.items():
            series = tuple(Series(name=lane, points=lanes[lane].points) for lane in sorted(lanes))
            charts.append(Chart(name=name, x=x, series=series))
        return charts

    def add_point(
        self, name: str, x: tuple[str, float], series: str, value: float, *, in_turn: bool = False
    ) -> None:
        """Add a value of the chart `name`; `x` names the axis, `step` or `epoch`, and the place on it.

        `in_turn`: the values come as the training reports them, which may begin again at its first place.
        """
        key, at = (name, x[0]), x[1]
        has_room = key in self._charts or len(self._charts) < CHARTS_MAX
        if name == THROUGHPUT or not (has_room and 0 <= at < MOST):
            return
        chart = self._charts.setdefault(key, {})
        if series in chart or len(chart) < SERIES_MAX:
            points = chart.setdefault(series, Thinned())
            (points.add_in_turn if in_turn else points.add)(float(at), value)
