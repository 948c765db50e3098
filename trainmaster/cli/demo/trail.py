"""What a dropped request leaves in the ledger and in the logs, whatever kind of job it became."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.cli.demo.stage import Dropped
from trainmaster.client.clients import Target, job_client, log_reader, storage_client
from trainmaster.client.job_logs import JobLogs, says_completed
from trainmaster.client.records import latest_run_of


@dataclass(frozen=True, kw_only=True)
class Glance:
    """One look at the trail; empty and None for what is not there yet."""

    record: dict[str, Any]
    job_name: str | None
    entries: tuple[Any, ...]  # log entries that are new since the last glance
    completed_line_at: datetime | None


class Trail:
    """The trail of one request; `jobs` is the client to ask for its job."""

    def __init__(self, target: Target, dropped: Dropped) -> None:
        self._target, self._dropped = target, dropped
        self._storage = storage_client(target)
        self._logs = JobLogs(log_reader(project=target.project, logging_host=target.logging_host))
        self._completed_line_at: datetime | None = None
        self.jobs = job_client(region=target.region, vertex_host=target.vertex_host)

    def look(self) -> Glance:
        dropped = self._dropped
        record = latest_run_of(self._storage, self._target, dropped.object_name, dropped.generation)
        job_name = (record.get("job") or {}).get("name")
        entries = tuple(self._logs.fresh(job_name.rpartition("/")[2])) if job_name else ()
        for entry in entries:
            if says_completed(entry):
                self._completed_line_at = entry.timestamp
        return Glance(
            record=record,
            job_name=job_name,
            entries=entries,
            completed_line_at=self._completed_line_at,
        )
