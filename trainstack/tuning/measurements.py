"""The measurements of one trial, from the file in which its chief reports, even if the trial restarts.

Source of the format: hypertune/hypertune.py of cloudml-hypertune 0.1.0.dev6, which rewrites the whole file
with at most the last 100 reports, one JSON object a line; metric and step are strings.
"""

import json
import math
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, median

from trainstack.jobs.resource.machines import Message

MAX_REPORTS = 100
MAX_FILE_BYTES = 1 << 20
"""How much of the end of a metric file is read; 100 reports of a few metrics have some 20 KiB."""
MAX_STEP = 2**63
MAX_TIME = 253402300800.0
"""The year 10000, in seconds since 1970: the upper limit of times in the API."""

_NAMES = frozenset({"timestamp", "trial", "global_step", "checkpoint_path"})


@dataclass(frozen=True, kw_only=True, order=True)
class TrialMeasurement:
    """One value of one metric; sorts in the service's order of measurements."""

    step: int
    elapsed: timedelta
    metric_id: str
    value: float


def read_metric_file(path: Path) -> str:
    """The end of a metric file, at most MAX_FILE_BYTES of it; empty unless it is a regular file that can be read.

    The trial's program may leave anything there: a folder, a pipe, a link out of its root, a file of any size.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:  # a trial without its metric says at its end that it reported none
        return ""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        start = max(0, status.st_size - MAX_FILE_BYTES)
        return os.pread(descriptor, MAX_FILE_BYTES, start).decode(errors="replace")
    finally:
        os.close(descriptor)


def read_reports(text: str, *, started: datetime) -> list[TrialMeasurement]:
    """The reports in a metric file, oldest first, as measurements of a trial that began at `started`.

    A line that is not a report, such as a half-written one, is skipped. So is a value that is not a finite
    number, and a negative step or time.
    """
    reports = [one for line in text.splitlines()[-MAX_REPORTS:] for one in _measurements_from(line, started)]
    return [one for one in reports if math.isfinite(one.value)]


def last_not_finite(text: str) -> dict[str, float]:
    """The last value of each metric in a metric file that is NaN or infinite; none of these is a measurement."""
    epoch = datetime.fromtimestamp(0, UTC)
    reports = [one for line in text.splitlines()[-MAX_REPORTS:] for one in _measurements_from(line, epoch)]
    return {one.metric_id: one.value for one in reports if not math.isfinite(one.value)}


def _measurements_from(line: str, started: datetime) -> list[TrialMeasurement]:
    try:
        fields = json.loads(line)
        step, time_s = int(float(fields.get("global_step", 0))), float(fields.get("timestamp", 0))
        if not (0 <= step < MAX_STEP and 0 <= time_s < MAX_TIME):
            return []
        elapsed = max(timedelta(), datetime.fromtimestamp(time_s, UTC) - started)
        return [
            TrialMeasurement(step=step, elapsed=elapsed, metric_id=name, value=float(value))
            for name, value in fields.items()
            if name not in _NAMES
        ]
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return []


def merged_measurements(
    known: Sequence[TrialMeasurement], reported: Sequence[TrialMeasurement]
) -> list[TrialMeasurement]:
    """`known` with what is new in `reported`, strictly rising by step and elapsed time for each metric.

    The file drops its oldest reports, a trial's measurements do not. A restarted program reports steps a
    second time: the later report of a step replaces the earlier one and all later ones of that metric. A
    program that counts no steps reports step 0; all such reports are kept.
    """
    by_metric: dict[str, list[TrialMeasurement]] = {}
    for one in known:
        by_metric.setdefault(one.metric_id, []).append(one)
    for report in reported:
        ours = by_metric.setdefault(report.metric_id, [])
        if ours and (report.elapsed, report.step) <= (ours[-1].elapsed, ours[-1].step):
            continue  # known already, or replaced since
        while ours and (report.step < ours[-1].step or report.step == ours[-1].step > 0):
            ours.pop()
        ours.append(report)
    return sorted(one for ours in by_metric.values() for one in ours)


def read(messages: Iterable[Message]) -> list[TrialMeasurement]:
    """Parse the API's measurements."""
    return [
        TrialMeasurement(
            step=message.step_count,
            elapsed=message.elapsed_duration.ToTimedelta(),
            metric_id=metric.metric_id,
            value=metric.value,
        )
        for message in messages
        for metric in message.metrics
    ]


def write(trial: Message, measured: Iterable[TrialMeasurement]) -> None:
    """Set the measurements of `trial` to `measured`, which must be in order: one for each step and time."""
    trial.ClearField("measurements")
    last: TrialMeasurement | None = None
    for one in measured:
        if last is None or (one.step, one.elapsed) != (last.step, last.elapsed):
            message = trial.measurements.add()
            message.step_count = one.step
            message.elapsed_duration.FromTimedelta(one.elapsed)
        metric = message.metrics.add()
        metric.metric_id, metric.value = one.metric_id, one.value
        last = one


MIN_COMPLETED = 3
"""With fewer completed trials, no trial is stopped. The project's choice."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """An objective value at `x`: a step, or seconds since the trial began. Higher is better."""

    x: float
    value: float


def is_below_median(running: Sequence[Point], completed: Sequence[Sequence[Point]]) -> bool:
    """Whether the best value so far is strictly worse than the median of the others' running averages up to here.

    Source: comments of StudySpec.MedianAutomatedStoppingSpec, read 2026-11.
    """
    if not running:
        return False
    here = max(point.x for point in running)
    reached = [[point.value for point in curve if point.x <= here] for curve in completed]
    averages = [fmean(values) for values in reached if values]
    return len(averages) >= MIN_COMPLETED and max(point.value for point in running) < median(averages)
