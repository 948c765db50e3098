"""What a trial reports, read from the file that cloudml-hypertune writes, and what is made of it.

Source of the format: hypertune/hypertune.py of cloudml-hypertune 0.1.0.dev6, whose file is rewritten whole
with at most the last 100 reports, one JSON object a line; metric and step are text.
"""

import json
import math
from dataclasses import dataclass

MAX_REPORTS = 100
MAX_TIME = 253402300800.0
"""The year 10000, in seconds since 1970: no time of the API lies behind it."""

_NAMES = frozenset({"timestamp", "trial", "global_step", "checkpoint_path"})


@dataclass(frozen=True, kw_only=True)
class Report:
    """One metric value. `step` is what the trial said, `at` its own clock in seconds since 1970."""

    metric_id: str
    value: float
    step: int
    at: float


def read_reports(text: str) -> list[Report]:
    """The reports in a metric file, oldest first. A line that is no report, half-written ones too, is passed over.

    So is a value that is no finite number, and a step or a time below zero.
    """
    found = [report for line in text.splitlines()[-MAX_REPORTS:] for report in _reports(line)]
    return [
        report
        for report in found
        if math.isfinite(report.value) and 0 <= report.step < 2**63 and 0 <= report.at < MAX_TIME
    ]


def _reports(line: str) -> list[Report]:
    try:
        fields = json.loads(line)
        step, at = int(float(fields.get("global_step", 0))), float(fields.get("timestamp", 0))
        return [
            Report(metric_id=name, value=float(value), step=step, at=at)
            for name, value in fields.items()
            if name not in _NAMES
        ]
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return []
