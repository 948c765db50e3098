"""The curves of a run, as data for charts and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.client.terminal import visible
from trainmaster.client.watch.curves import POINTS_MAX, Chart, Series

POINTS_OF_CHART = 4000
"""Of all its series together: they are sent again with every change."""
DIGITS = 6


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
        {"name": visible(each.name), "points": [_point(x, y) for x, y in _thinned(each, most)]}
        for each in chart.series
    ]
    return ChartView(
        id=f"curve-{number}",
        title=name,
        x=chart.x,
        data={"x": chart.x, "y": name, "series": series},
        last=[(visible(each.name), f"{each.last[0]:g}", f"{each.last[1]:.4g}") for each in chart.series],
    )


def _thinned(series: Series, most: int) -> Sequence[tuple[float, float]]:
    """Every n-th point, and the last."""
    step = -(-len(series.points) // most)
    kept = series.points[::step]
    return kept if kept[-1] == series.last else (*kept, series.last)


def _point(x: float, y: float) -> list[float]:
    return [int(x) if x.is_integer() else x, float(f"{y:.{DIGITS}g}")]
