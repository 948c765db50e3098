"""What a dropped request leaves in the ledger and in the logs, whatever kind of job it became."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.cli.demo.stage import Dropped
from trainmaster.cli.demo.way import Sighting
from trainmaster.client.clients import Target, job_client, log_reader, storage_client
from trainmaster.client.job_logs import JobLogs, says_completed
from trainmaster.client.records import latest_run_of
from trainmaster.client.times import moment_of


class Trail:
    """The trail of one request. `jobs` is the client for its job, `entries` what the last look found new in the log."""

    def __init__(self, target: Target, dropped: Dropped) -> None:
        self._target, self._dropped = target, dropped
        self._storage = storage_client(target)
        self._logs = JobLogs(log_reader(project=target.project, logging_host=target.logging_host))
        self._completed_line_at: datetime | None = None
        self.jobs = job_client(region=target.region, vertex_host=target.vertex_host)
        self.entries: tuple[Any, ...] = ()  # Any: the client's entry classes share no typed base

    def look(self) -> Sighting:
        """Where the request stands now, the job's own times left out."""
        dropped = self._dropped
        record = latest_run_of(self._storage, self._target, dropped.object_name, dropped.generation)
        seen = Sighting(dropped_uri=dropped.uri, dropped_at=dropped.at, record=record)
        self.entries = tuple(self._logs.fresh(seen.job_name.rpartition("/")[2])) if seen.job_name else ()
        for entry in self.entries:
            if says_completed(entry):
                self._completed_line_at = entry.timestamp
        return replace(seen, completed_line_at=self._completed_line_at)


def with_job(seen: Sighting, job: Any) -> dict[str, Any]:  # Any: a job of either kind, as its client gives it
    """The fields of the sighting, with the job's state and times."""
    times = {"job_started_at": moment_of(job.start_time), "job_ended_at": moment_of(job.end_time)}
    return {**vars(seen), **times, "job_state": job.state.name}
