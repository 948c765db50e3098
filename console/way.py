"""The way of one request as the demo shows it: hops with their times, read from the services themselves.

Each hop is taken from the service that knows it best: the object's own creation time, the run
record's history, the job's times, the log entries. Nothing is timed by the demo's own clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from console.training_progress import TrainingProgress


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One station of the way; `at` is unknown until it was passed."""

    title: str
    at: datetime | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """Everything known of the request at one moment; absent parts have not happened yet."""

    dropped_uri: str
    dropped_at: datetime
    record: Mapping[str, Any] | None = None  # schemas/run_record.v1.schema.json
    job_state: str | None = None
    job_started_at: datetime | None = None
    job_ended_at: datetime | None = None
    exported_at: datetime | None = None
    completed_line_at: datetime | None = None
    training: TrainingProgress = field(default_factory=TrainingProgress)


def moment(text: str | None) -> datetime | None:
    """An aware datetime from RFC 3339, with `Z` or an offset."""
    return datetime.fromisoformat(text) if text else None


def first_time(record: Mapping[str, Any] | None, state: str) -> datetime | None:
    """When the record first said `state`."""
    history: Sequence[Mapping[str, Any]] = (record or {}).get("history", [])
    return next((moment(step["at"]) for step in history if step["state"] == state), None)


def hops(seen: Sighting) -> list[Hop]:
    """The stations in the order in which a request passes them."""
    record = seen.record or {}
    job = record.get("job") or {}
    model = record.get("model") or {}
    ended = record.get("state") in TERMINAL_STATES
    return [
        Hop(title="Request dropped", at=seen.dropped_at, detail=seen.dropped_uri),
        Hop(
            title="CloudEvent reaches on_request_uploaded",
            at=first_time(record, "reserved"),
            detail=f"run {record['run_id']} reserved" if record else "",
        ),
        Hop(
            title="Vertex AI CustomJob submitted",
            at=first_time(record, "submitted"),
            detail=str(job.get("name", "")),
        ),
        Hop(title="Both replicas up", at=seen.job_started_at, detail=_replicas(seen.training)),
        Hop(title="Chief exports the model", at=seen.exported_at, detail=seen.training.model_path or ""),
        Hop(title="Job ends", at=seen.job_ended_at, detail=seen.job_state or ""),
        Hop(
            title="Log sink takes the job's last line",
            at=seen.completed_line_at,
            detail="Job completed successfully.",
        ),
        Hop(
            title="on_job_log closes the record",
            at=first_time(record, record["state"]) if ended else None,
            detail=str(model.get("uri") or record.get("state", "")) if ended else "",
        ),
    ]


def _replicas(training: TrainingProgress) -> str:
    return ", ".join(sorted(training.replicas)) + (f" under {training.strategy}" if training.strategy else "")


TERMINAL_STATES = frozenset(
    {"succeeded", "failed", "cancelled", "rejected", "expired", "partially_succeeded"}
)
