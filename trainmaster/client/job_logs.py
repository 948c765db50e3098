"""The log entries of one job, each once, as they become readable."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.core.completion.entry import TRIAL_LABEL

if TYPE_CHECKING:
    from google.cloud.logging import Client as LoggingClient

SERVICE_TASK = "service"
COMPLETED = "Job completed successfully."

LATE = timedelta(minutes=1)
"""How far back each query reaches: replicas send lines in batches, so a line may become readable after others with later
timestamps. A line that is later than this is missed."""


class JobLogs:
    """One reader; each call of `fresh` returns what is new since the last."""

    def __init__(self, client: "LoggingClient") -> None:
        self._client = client
        self._seen: set[str] = set()
        self._last_at: datetime | None = None

    def fresh(self, job_id: str) -> Iterator[Any]:  # Any: the client's entry classes share no typed base
        """New entries, as the client's `LogEntry` objects. A tuning job's trials log under the job's id."""
        filter_ = f'resource.type="ml_job" AND resource.labels.job_id="{job_id}"'
        if self._last_at is not None:
            filter_ += f' AND timestamp>="{(self._last_at - LATE).isoformat()}"'
        for entry in self._client.list_entries(filter_=filter_, page_size=1000):
            if entry.insert_id not in self._seen:
                self._seen.add(entry.insert_id)
                self._last_at = max(self._last_at or entry.timestamp, entry.timestamp)
                yield entry


def says_completed(entry: Any) -> bool:
    """Whether the entry reports that the job itself, not one of its trials, completed."""
    is_service = entry.resource.labels.get("task_name") == SERVICE_TASK
    of_trial = TRIAL_LABEL in (entry.labels or {})
    return bool(is_service and not of_trial and entry.payload == COMPLETED)
