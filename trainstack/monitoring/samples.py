"""The samples of jobs that run or have ended: a bounded number for each replica, kept in memory until the job is deleted.

When a replica has POINTS_MAX points, pairs of them become one, and later samples join into points of that length.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

POINTS_MAX = 300
JOBS_MAX = 500
"""The job that was sampled first is forgotten first."""
PREFIX = "ml.googleapis.com/training/"
CPU, MEMORY = f"{PREFIX}cpu/utilization", f"{PREFIX}memory/utilization"
GPU, GPU_MEMORY = f"{PREFIX}accelerator/utilization", f"{PREFIX}accelerator/memory/utilization"
"""Those that are sampled: fractions, of the machine that the replica asked for.

Source: https://cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml (read 2026-11)
"""
_SLACK_S = 0.1
"""How much longer than the resolution a point may be: a sample may come a little late."""


@dataclass(frozen=True)
class Point:
    """A mean over `span_s` seconds up to `at`, in seconds since the epoch."""

    at: float
    span_s: float
    value: float

    def with_later(self, later: "Point") -> "Point":
        span_s = self.span_s + later.span_s
        return Point(later.at, span_s, (self.value * self.span_s + later.value * later.span_s) / span_s)


@dataclass(frozen=True)
class SeriesKey:
    """The labels of one series. `accelerator` is empty for a metric without accelerators."""

    metric: str
    job_id: str
    task: str
    accelerator: str = ""


@dataclass
class _Series:
    resolution_s: float
    points: list[Point] = field(default_factory=list)

    def add(self, new: Point, *, is_last: bool) -> None:
        points = self.points
        is_short = is_last and new.span_s < self.resolution_s / 2
        if points and (is_short or points[-1].span_s + new.span_s <= self.resolution_s + _SLACK_S):
            points[-1] = points[-1].with_later(new)
        else:
            points.append(new)
        if len(points) > POINTS_MAX:
            points[:POINTS_MAX] = [
                points[index].with_later(points[index + 1]) for index in range(0, POINTS_MAX, 2)
            ]
            self.resolution_s *= 2


class Samples:
    """The series of all jobs. May be used from any thread."""

    def __init__(self, resolution_s: float) -> None:
        self._resolution_s = resolution_s
        self._jobs: dict[str, dict[SeriesKey, _Series]] = {}
        self._lock = threading.Lock()

    def add(self, key: SeriesKey, point: Point, *, is_last: bool = False) -> None:
        """Add a point. The last one of a process joins the one before if it is short: otherwise it would count as much."""
        with self._lock:
            if key.job_id not in self._jobs and len(self._jobs) >= JOBS_MAX:
                del self._jobs[next(iter(self._jobs))]
            series = self._jobs.setdefault(key.job_id, {})
            series.setdefault(key, _Series(self._resolution_s)).add(point, is_last=is_last)

    def forget(self, job_id: str) -> None:
        """Remove the samples of a job that was deleted."""
        with self._lock:
            self._jobs.pop(job_id, None)

    def of_metric(self, metric: str) -> Mapping[SeriesKey, tuple[Point, ...]]:
        """The series of all replicas, each oldest first."""
        with self._lock:
            every = [item for job in self._jobs.values() for item in job.items()]
            return {key: tuple(series.points) for key, series in every if key.metric == metric}
