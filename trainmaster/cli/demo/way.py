"""The way of one request as a demo shows it: hops with their times, read from the services themselves.

Each hop is taken from the service that knows it best: the object's own creation time, the run
record's history, the job's times, the log entries. Nothing is timed by the demo's own clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.client.job_logs import COMPLETED
from trainmaster.client.times import moment
from trainmaster.orchestrator.core.runs.states import ENDS


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One station of the way; `at` is unknown until it was passed."""

    title: str
    at: datetime | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """What is known of any request at one moment; absent parts have not happened yet."""

    dropped_uri: str
    dropped_at: datetime
    record: Mapping[str, Any] = field(default_factory=dict)  # schemas/run_record.v2.schema.json; empty: none
    job_state: str | None = None
    job_started_at: datetime | None = None
    job_ended_at: datetime | None = None
    completed_line_at: datetime | None = None

    @property
    def job_name(self) -> str:
        """The job's resource name, empty before there is one."""
        return str((self.record.get("job") or {}).get("name") or "")

    @property
    def ended(self) -> bool:
        return self.record.get("state") in ENDS


def first_time(record: Mapping[str, Any], state: str) -> datetime | None:
    """When the record first said `state`."""
    history: Sequence[Mapping[str, Any]] = record.get("history", [])
    return next((moment(step["at"]) for step in history if step["state"] == state), None)


def whole_way(seen: Sighting, *, resource: str, at_work: Iterable[Hop]) -> list[Hop]:
    """The stations in the order in which a request passes them; `at_work` are those between submission and end."""
    record = seen.record
    model_uri = (record.get("model") or {}).get("uri")
    return [
        Hop(title="Request dropped", at=seen.dropped_at, detail=seen.dropped_uri),
        Hop(
            title="CloudEvent reaches on_request_uploaded",
            at=first_time(record, "reserved"),
            detail=f"run {record['run_id']} reserved" if record else "",
        ),
        Hop(
            title=f"Vertex AI {resource} submitted",
            at=first_time(record, "submitted"),
            detail=seen.job_name,
        ),
        *at_work,
        Hop(title="Job ends", at=seen.job_ended_at, detail=seen.job_state or ""),
        Hop(title="Log sink takes the job's last line", at=seen.completed_line_at, detail=COMPLETED),
        Hop(
            title="on_job_log closes the record",
            at=first_time(record, record["state"]) if seen.ended else None,
            detail=str(model_uri or record.get("state", "")) if seen.ended else "",
        ),
    ]
