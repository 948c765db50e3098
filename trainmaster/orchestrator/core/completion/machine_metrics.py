"""What Vertex AI reports to Cloud Monitoring about the machines of jobs: which series to list, and what they say.

Metrics and labels: https://cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml and
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/monitoring-metrics (read 2026-11).
The method: https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from statistics import fmean
from typing import Any

from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.runs.utilization import REPLICAS_MAX, ReplicaUse, Use, Utilization

PERMISSION = "monitoring.timeSeries.list"
SCOPE = "https://www.googleapis.com/auth/monitoring.read"
ENDPOINT = "https://monitoring.googleapis.com"
POINTS_MAX = 60
"""Of one series: a longer job is divided into as many periods."""
PAGES_MAX, PAGE_POINTS, MAX_PAGE_BYTES = 4, 20_000, 16 * 2**20
SAMPLED_EVERY = timedelta(minutes=1)
_JOB, _TASK, _GPU = "job_id", "task_name", "accelerator_id"


class MachineMetric(StrEnum):
    """The metrics of a training job's replicas, after `ml.googleapis.com/training/`; the first four are fractions."""

    CPU = "cpu/utilization"
    MEMORY = "memory/utilization"
    GPU = "accelerator/utilization"
    GPU_MEMORY = "accelerator/memory/utilization"
    RECEIVED = "network/received_bytes_count"
    SENT = "network/sent_bytes_count"

    @property
    def is_of_gpu(self) -> bool:
        return self in (MachineMetric.GPU, MachineMetric.GPU_MEMORY)

    @property
    def is_count(self) -> bool:
        return self in (MachineMetric.RECEIVED, MachineMetric.SENT)


@dataclass(frozen=True, kw_only=True)
class MetricQuery:
    """One metric over an interval: of one job by replica and GPU, or without a job one mean of each job."""

    metric: MachineMetric
    since: datetime
    until: datetime
    job_id: str | None = None

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Those of `projects.timeSeries.list`."""
        terms = [f'metric.type = "ml.googleapis.com/training/{self.metric}"', 'resource.type = "cloudml_job"']
        if self.job_id is not None:
            terms.append(f'resource.labels.job_id = "{self.job_id}"')
        return [
            ("filter", " AND ".join(terms)),
            ("interval.startTime", encoded_time(self.since)),
            ("interval.endTime", encoded_time(self.until)),
            *self._aggregation(),
            ("view", "FULL"),
            ("pageSize", str(PAGE_POINTS)),
        ]

    def _aggregation(self) -> Iterator[tuple[str, str]]:
        """None for a short interval, of which every sample is read."""
        length, of_all = self.until - self.since, self.job_id is None
        if not of_all and length <= POINTS_MAX * SAMPLED_EVERY:
            return
        period_s = math.ceil(length.total_seconds() / (1 if of_all else POINTS_MAX))
        yield "aggregation.alignmentPeriod", f"{max(period_s, 60)}s"
        yield "aggregation.perSeriesAligner", "ALIGN_SUM" if self.metric.is_count else "ALIGN_MEAN"
        if of_all:
            yield "aggregation.crossSeriesReducer", "REDUCE_MEAN"
            yield "aggregation.groupByFields", f"resource.labels.{_JOB}"


@dataclass(frozen=True, kw_only=True)
class MetricSeries:
    """The points of one series, oldest first. `replica` and `gpu` are empty where the query reduces them away."""

    job_id: str
    replica: str = ""
    gpu: str = ""
    points: tuple[tuple[datetime, float], ...]

    @property
    def mean(self) -> float:
        return fmean(value for _, value in self.points)


def list_series(
    query: MetricQuery, get: Callable[[Sequence[tuple[str, str]]], Mapping[str, Any]]
) -> Sequence[MetricSeries]:
    """The series, whose pages `get` fetches: the answer to these parameters, parsed. At most PAGES_MAX are read."""
    found: defaultdict[tuple[str, str, str], dict[datetime, float]] = defaultdict(dict)
    token = ""
    for _ in range(PAGES_MAX):
        answer = get([*query.parameters, *([("pageToken", token)] if token else [])])
        scale = 0.01 if answer.get("unit") == "%" else 1.0
        for one in answer.get("timeSeries") or ():
            found[_key(one)].update(_points(one, scale))
        token = answer.get("nextPageToken") or ""
        if not token:
            break
    return [
        MetricSeries(job_id=job, replica=replica, gpu=gpu, points=tuple(sorted(points.items())))
        for (job, replica, gpu), points in sorted(found.items())
        if points
    ]


def _key(series: Mapping[str, Any]) -> tuple[str, str, str]:
    resource = series.get("resource", {}).get("labels", {})
    of_metric = series.get("metric", {}).get("labels", {})
    return str(resource.get(_JOB, "")), str(resource.get(_TASK, "")), str(of_metric.get(_GPU, ""))


def _points(series: Mapping[str, Any], scale: float) -> Iterator[tuple[datetime, float]]:
    for point in series.get("points") or ():
        value = point.get("value", {})
        number = float(value.get("doubleValue", value.get("int64Value", math.nan)))
        if math.isfinite(number):
            yield datetime.fromisoformat(point["interval"]["endTime"]).astimezone(UTC), number * scale


def job_queries(job_id: str, since: datetime, until: datetime, *, has_gpus: bool) -> Iterator[MetricQuery]:
    """What to ask about the machines of one job; its CPU first, which every replica reports."""
    for metric in MachineMetric:
        if has_gpus or not metric.is_of_gpu:
            yield MetricQuery(metric=metric, since=since, until=until, job_id=job_id)


def utilization_of(found: Mapping[MachineMetric, Sequence[MetricSeries]]) -> Utilization | None:
    """The use of each replica that reported any; None without any."""
    by_replica: defaultdict[str, dict[MachineMetric, list[MetricSeries]]] = defaultdict(dict)
    for metric, series in found.items():
        for one in series:
            by_replica[one.replica].setdefault(metric, []).append(one)
    uses = [_replica_use(replica, of) for replica, of in sorted(by_replica.items(), key=_in_order)]
    left_out = max(len(uses) - REPLICAS_MAX, 0) or None
    return Utilization(replicas=tuple(uses[:REPLICAS_MAX]), left_out=left_out) if uses else None


def _in_order(item: tuple[str, object]) -> tuple[str, int, str]:
    pool, _, number = item[0].rpartition("-")
    return pool, int(number) if number.isascii() and number.isdecimal() else 0, number


def _replica_use(replica: str, found: Mapping[MachineMetric, Sequence[MetricSeries]]) -> ReplicaUse:
    uses = {metric: _use(series) for metric, series in found.items() if not metric.is_count}
    totals = {metric: _total(series) for metric, series in found.items() if metric.is_count}
    return ReplicaUse(
        replica=replica,
        cpu=uses.get(MachineMetric.CPU),
        memory=uses.get(MachineMetric.MEMORY),
        gpu=uses.get(MachineMetric.GPU),
        gpu_memory=uses.get(MachineMetric.GPU_MEMORY),
        received_bytes=totals.get(MachineMetric.RECEIVED),
        sent_bytes=totals.get(MachineMetric.SENT),
    )


def _use(series: Sequence[MetricSeries]) -> Use:
    highest = max(value for one in series for _, value in one.points)
    return Use(mean=round(fmean(one.mean for one in series), 4), max=round(highest, 4))


def _total(series: Sequence[MetricSeries]) -> int:
    return int(sum(value for one in series for _, value in one.points))


def last_point_at(series: Iterable[MetricSeries]) -> datetime | None:
    """When the newest sample was taken, of the replica that has the oldest such one; None without any."""
    return min((one.points[-1][0] for one in series), default=None)
