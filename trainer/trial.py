"""Whether this process is a trial of a tuning job, and where its metrics are read.

Source: "Create a hyperparameter tuning job" and the code requirements of the Vertex AI guide for the
variables; hypertune/hypertune.py of cloudml-hypertune 0.1.0.dev6 for what holds without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_METRIC_FILE = "/tmp/hypertune/output.metrics"  # noqa: S108 - where the service's agent looks
NO_TRIAL = "0"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """`asked_metric` is the metric id of the study, where the service says it."""

    trial_id: str
    metric_file: Path
    asked_metric: str | None


def trial_from(environment: Mapping[str, str]) -> Trial | None:
    """The trial that `environment` tells of. None: this run is no trial, and no metric file is asked for."""
    trial_id, path = (environment.get(name) for name in ("CLOUD_ML_TRIAL_ID", "CLOUD_ML_HP_METRIC_FILE"))
    if not trial_id and not path:
        return None
    return Trial(
        trial_id=trial_id or NO_TRIAL,
        metric_file=Path(path or DEFAULT_METRIC_FILE),
        asked_metric=environment.get("CLOUD_ML_HP_METRIC_TAG") or None,
    )
