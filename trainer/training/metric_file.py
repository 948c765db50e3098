"""A trial of a tuning job, if this process is one, and its metric file, in the form that cloudml-hypertune writes.

One JSON object per line, keys sorted, metric and step as strings; each report rewrites the file, which has the
last 100. Sources: hypertune/hypertune.py of cloudml-hypertune 0.1.0.dev6, also for the defaults of the variables;
for the variables, "Create a hyperparameter tuning job" and the code requirements of the Vertex AI guide.

The package is not used: it keeps its reports in memory alone, so that a restarted trial would empty the file, and its
last release is of 2019.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.faults import Unusable

MAX_REPORTS = 100
DEFAULT_METRIC_FILE = "/tmp/hypertune/output.metrics"  # noqa: S108 - where the service's agent looks
NO_TRIAL = "0"
EVALUATED = "val_"  # what Keras calls the metrics of the evaluation


@dataclass(frozen=True, kw_only=True)
class ReportedTrial:
    """`asked_metric` is the metric id of the study, if the service sets it."""

    trial_id: str
    metric_file: Path
    asked_metric: str | None


def trial_from(environment: Mapping[str, str]) -> ReportedTrial | None:
    """The trial that `environment` names; None if it names neither a trial nor a metric file."""
    trial_id, path = (environment.get(name) for name in ("CLOUD_ML_TRIAL_ID", "CLOUD_ML_HP_METRIC_FILE"))
    if not trial_id and not path:
        return None
    return ReportedTrial(
        trial_id=trial_id or NO_TRIAL,
        metric_file=Path(path or DEFAULT_METRIC_FILE),
        asked_metric=environment.get("CLOUD_ML_HP_METRIC_TAG") or None,
    )


class MetricFile:
    """Reports of one trial, in order of steps; each step is reported once."""

    def __init__(self, path: Path, *, trial_id: str, after_step: int = 0) -> None:
        """Reports up to `after_step`, from which a restarted trial continues, are kept; later ones are removed.

        Raises:
            Unusable: the file cannot be written.
        """
        self._path, self._trial_id = path, trial_id
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            reports = parse_reports(path.read_text(errors="replace"), trial_id) if path.exists() else []
            self._reports = [report for report in reports if int(report["global_step"]) <= after_step]
            self._write_reports()
        except OSError as error:
            raise Unusable(
                f"CLOUD_ML_HP_METRIC_FILE={path} cannot be written ({error.strerror}), so the study would not get this "
                f"trial's metrics. Set it to a file in a directory that the trainer may write to."
            ) from error

    @property
    def last_step(self) -> int:
        """0 before the first report."""
        return int(self._reports[-1]["global_step"]) if self._reports else 0

    def report(self, metrics: Mapping[str, float], step: int) -> None:
        """Add the metrics of `step` if it is later than the last report. NaN and infinities are written as such.

        No service counts these as measurements, but the file then shows why a trial has none.
        """
        if step <= self.last_step:
            return
        self._reports += [
            {
                "timestamp": time.time(),
                "trial": self._trial_id,
                name: str(float(value)),
                "global_step": str(step),
                "checkpoint_path": "",
            }
            for name, value in metrics.items()
        ]
        del self._reports[:-MAX_REPORTS]
        self._write_reports()

    def _write_reports(self) -> None:
        """Write in place, as hypertune does: the file may be a mount point."""
        self._path.write_text("".join(json.dumps(report, sort_keys=True) + "\n" for report in self._reports))


def evaluated_metrics(metrics: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The evaluation's values of those of `names` that it has, under their plain names."""
    return {name: metrics[EVALUATED + name] for name in names if EVALUATED + name in metrics}


def missing_metrics(asked: Sequence[str], known: Sequence[str]) -> list[str]:
    """Those of `asked` that are not among the metrics that a model has.

    Raises:
        Unusable: all are missing, so the study would not get a result of this trial.
    """
    if missing := [name for name in asked if name not in known]:
        has = f"the model is compiled with {', '.join(known)}"
        if missing == list(asked):
            raise Unusable(
                f"--reported_metrics={','.join(asked)}: {has}, so the study would not get any result of this trial. "
                f"Name one of these with --reported_metrics, or compile the model with {asked[0]}."
            )
    return missing


def parse_reports(text: str, trial_id: str) -> list[dict[str, Any]]:
    """The reports of `trial_id` in a metric file, up to the first damaged line, which a killed process left."""
    reports: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            report = json.loads(line)
            if report["trial"] == trial_id:
                int(report["global_step"])
                reports.append(report)
        except (ValueError, KeyError, TypeError):
            break
    return reports
