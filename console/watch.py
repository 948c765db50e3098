"""Follows one dropped request through the services, by polling their public APIs."""

from datetime import datetime
from typing import Any

from console.clients import Target, job_client, logging_client, storage_client
from console.records import latest_run_of
from console.training_progress import TrainingProgress
from console.way import Sighting, moment

SERVICE_TASK = "service"
COMPLETED = "Job completed successfully."


class Watch:
    """One request under observation; every call of `look` reads what is new since the last."""

    def __init__(self, target: Target, *, object_name: str, generation: int, dropped_at: datetime) -> None:
        self._target = target
        self._object_name = object_name
        self._generation = generation
        self._storage = storage_client(target)
        self._jobs = job_client(target)
        self._logs = logging_client(target)
        self._seen_entries: set[str] = set()
        self._last_entry_at: datetime | None = None
        self._training = TrainingProgress()
        self._exported_at: datetime | None = None
        self._completed_line_at: datetime | None = None
        self._dropped_uri = f"gs://{target.inbox_bucket}/{object_name}"
        self._dropped_at = dropped_at

    def look(self) -> Sighting:
        """Where the request stands now."""
        record = latest_run_of(self._storage, self._target, self._object_name, self._generation)
        job_name = ((record or {}).get("job") or {}).get("name")
        job = self._jobs.get_custom_job(name=job_name) if job_name else None
        if job_name:
            self._read_logs(job_name.rpartition("/")[2])
        return Sighting(
            dropped_uri=self._dropped_uri,
            dropped_at=self._dropped_at,
            record=record,
            job_state=job.state.name if job else None,
            job_started_at=moment_of(job.start_time) if job else None,
            job_ended_at=moment_of(job.end_time) if job else None,
            exported_at=self._exported_at,
            completed_line_at=self._completed_line_at,
            training=self._training,
        )

    def _read_logs(self, job_id: str) -> None:
        filter_ = f'resource.type="ml_job" AND resource.labels.job_id="{job_id}"'
        if self._last_entry_at is not None:
            # Not strictly later: entries of one moment may become readable one after the other.
            filter_ += f' AND timestamp>="{self._last_entry_at.isoformat()}"'
        for entry in self._logs.list_entries(filter_=filter_, page_size=1000):
            if entry.insert_id not in self._seen_entries:
                self._seen_entries.add(entry.insert_id)
                self._learn(entry)

    def _learn(self, entry: Any) -> None:  # Any: the client's entry classes share no typed base
        self._last_entry_at = entry.timestamp
        if isinstance(entry.payload, dict):
            self._training = self._training.after(entry.payload)
            if entry.payload.get("event") == "model_exported":
                self._exported_at = entry.timestamp
        if entry.resource.labels.get("task_name") == SERVICE_TASK and entry.payload == COMPLETED:
            self._completed_line_at = entry.timestamp


def moment_of(timestamp: Any) -> datetime | None:  # Any: proto-plus's DatetimeWithNanoseconds is untyped
    """The aware datetime of a protobuf timestamp field, None while it is unset."""
    return moment(timestamp.rfc3339()) if timestamp else None
