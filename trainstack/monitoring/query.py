"""A list of time series: which, over which interval, aligned and reduced how.

Source: https://cloud.google.com/monitoring/api/v3/filters and https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from trainstack.errors import InvalidArgumentError
from trainstack.instants import format_instant, parse_duration, parse_instant
from trainstack.monitoring.samples import Point, SeriesKey

RESOURCE = "cloudml_job"
MIN_PERIOD_S = 60
_SELECTORS = ("metric.type", "resource.type", "resource.labels.job_id", "resource.labels.task_name",
              "resource.labels.project_id", "metric.labels.accelerator_id")  # fmt: skip
_QUOTED = r'"[^"\\]*"'
_TERM = re.compile(
    rf"\s*({'|'.join(map(re.escape, _SELECTORS))})\s*=\s*(one_of\(\s*{_QUOTED}(?:\s*,\s*{_QUOTED})*\s*\)|{_QUOTED})\s*(AND\b|$)"
)
_MEANS: Mapping[str, Callable[[Sequence[float]], float]] = {"MEAN": fmean, "MAX": max, "MIN": min, "SUM": sum}
_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class SeriesQuery:
    """The requested series. Times are in seconds since the epoch; `aligner` and `reducer` are empty for points as they are."""

    metric: str
    wanted: Mapping[str, frozenset[str]]
    after: float
    until: float
    period_s: float
    aligner: str
    reducer: str
    group_by: tuple[str, ...]


def query_of(given: Mapping[str, str], group_by: Sequence[str]) -> SeriesQuery:
    """The query in a method's parameters.

    Raises:
        InvalidArgumentError: one is missing, or asks for what the stack does not imitate.
    """
    wanted = _wanted_values(given.get("filter", ""))
    metric = wanted.get("metric.type", frozenset())
    if len(metric) != 1:
        raise InvalidArgumentError('filter: expected exactly one metric.type = "…".')
    if "interval.endTime" not in given:
        raise InvalidArgumentError("interval.endTime: required.")
    until = _seconds(given, "interval.endTime", parse_instant)
    after = _seconds(given, "interval.startTime", parse_instant, or_else=until)
    if after > until:
        raise InvalidArgumentError("interval: the start time is after the end time.")
    aligner = _choice(given.get("aggregation.perSeriesAligner", ""), "ALIGN_")
    reducer = _choice(given.get("aggregation.crossSeriesReducer", ""), "REDUCE_")
    period_s = _seconds(given, "aggregation.alignmentPeriod", parse_duration)
    if aligner and period_s < MIN_PERIOD_S:
        raise InvalidArgumentError(f"aggregation.alignmentPeriod: at least {MIN_PERIOD_S}s.")
    if reducer and not aligner:
        raise InvalidArgumentError("aggregation.perSeriesAligner: required with a crossSeriesReducer.")
    if unknown := [name for name in group_by if name not in _SELECTORS]:
        raise InvalidArgumentError(f"aggregation.groupByFields: unknown field {unknown[0]!r}.")
    return SeriesQuery(
        metric=next(iter(metric)), wanted=wanted, after=after, until=until,
        period_s=period_s, aligner=aligner, reducer=reducer, group_by=tuple(group_by),
    )  # fmt: skip


def _seconds(given: Mapping[str, str], name: str, parse: Callable[[str], int], or_else: float = 0.0) -> float:
    try:
        return parse(given[name]) / _NS if given.get(name) else or_else
    except ValueError as fault:
        raise InvalidArgumentError(f"{name}: {fault}.") from fault


def _wanted_values(text: str) -> Mapping[str, frozenset[str]]:
    """The values of each selector."""
    wanted: dict[str, frozenset[str]] = {}
    position, has_more = 0, True
    while has_more:
        if (term := _TERM.match(text, position)) is None:
            raise InvalidArgumentError(
                f"filter: the local stack takes terms of {', '.join(_SELECTORS)}, each = a quoted text or one_of(…), "
                f"joined by AND; found {text[position : position + 40]!r}."
            )
        values = frozenset(quoted[1:-1] for quoted in re.findall(_QUOTED, term[2]))
        wanted[term[1]] = values & wanted.get(term[1], values)
        position, has_more = term.end(), bool(term[3])
    return wanted


def _choice(name: str, prefix: str) -> str:
    kind = name.removeprefix(prefix)
    if kind not in ("", "NONE", *_MEANS):
        allowed = ", ".join(prefix + kind for kind in ("NONE", *_MEANS))
        raise InvalidArgumentError(
            f"aggregation: {name} is not imitated by the local stack; it has {allowed}."
        )
    return kind if kind in _MEANS else ""


def answered_series(
    query: SeriesQuery, series: Mapping[SeriesKey, Sequence[Point]], project: str
) -> Iterator[dict[str, Any]]:
    """The series in the API's form, the newest point of each first; those without a point are left out."""
    shown = {"metric.type", "resource.type", "resource.labels.project_id", *query.group_by}
    found = defaultdict[tuple[tuple[str, str], ...], defaultdict[float, list[float]]](
        lambda: defaultdict(list)
    )
    for key, points in series.items():
        labels = _labels(key, project)
        if all(labels.get(name, "") in values for name, values in query.wanted.items()):
            group = tuple(one for one in labels.items() if not query.reducer or one[0] in shown)
            for at, value in _aligned_values(query, points):
                found[group][at].append(value)
    reduce = _MEANS[query.reducer or "MEAN"]  # of one value, if the series are not reduced
    for group, values in found.items():
        yield _series(dict(group), [(at, reduce(values[at])) for at in sorted(values, reverse=True)])


def _labels(key: SeriesKey, project: str) -> dict[str, str]:
    labels = {
        "metric.type": key.metric,
        "resource.type": RESOURCE,
        "resource.labels.project_id": project,
        "resource.labels.job_id": key.job_id,
        "resource.labels.task_name": key.task,
    }
    return labels | ({"metric.labels.accelerator_id": key.accelerator} if key.accelerator else {})


def _aligned_values(query: SeriesQuery, points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """Times and values; aligned ones are at the ends of periods, counted back from the interval's end."""
    periods = defaultdict[float, list[float]](list)
    for point in points:
        if query.after < point.at <= query.until:
            back = (query.until - point.at) // query.period_s if query.aligner else 0.0
            periods[query.until - back * query.period_s if query.aligner else point.at].append(point.value)
    yield from ((at, _MEANS[query.aligner or "MEAN"](values)) for at, values in periods.items())


def _series(labels: Mapping[str, str], points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    def part(name: str) -> dict[str, Any]:
        prefix = f"{name}.labels."
        own = {key.removeprefix(prefix): text for key, text in labels.items() if key.startswith(prefix)}
        return {"type": labels[f"{name}.type"], "labels": own}

    return {
        "metric": part("metric"),
        "resource": part("resource"),
        "metricKind": "GAUGE",
        "valueType": "DOUBLE",
        "points": [
            {"interval": {"startTime": text, "endTime": text}, "value": {"doubleValue": value}}
            for text, value in ((format_instant(int(at * 1e6) * 1000), value) for at, value in points)
        ],
    }
