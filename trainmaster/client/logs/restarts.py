"""The restarts of a job, counted by the documented line in its log."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.client.errors import service_errors
from trainmaster.client.logs.line import SERVICE
from trainmaster.client.logs.read import JobLogReader, Selection
from trainmaster.client.times import utc_text
from trainmaster.orchestrator.core.completion.replica_exit import NEXT_ATTEMPT
from trainmaster.orchestrator.core.job_names import job_id

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.orchestrator.core.runs.record import RunRecord

LINES_READ = 100
_TIMES = {1: "once", 2: "twice"}
_SELECTION = Selection(replica=SERVICE, text=NEXT_ATTEMPT)


@dataclass(frozen=True, kw_only=True)
class JobRestarts:
    """How often, at most LINES_READ, and when the last time."""

    count: int
    last_at: datetime

    @property
    def times(self) -> str:
        """`once`, `twice`, `3 times`."""
        return _TIMES.get(self.count, f"{self.count} times")

    @property
    def text(self) -> str:
        """`restarted once, at 2026-11-23 03:00:05 UTC`."""
        last = "" if self.count == 1 else "last "
        return f"restarted {self.times}, {last}at {utc_text(self.last_at)}"


def restarts_of(clients: "Clients", record: "RunRecord") -> JobRestarts | None:
    """The restarts of the run's job, also after its end; None if it has no job, there was none, or the log cannot be read.

    Costs one read of the log for a run with a job, and nothing for any other.
    """
    if record.job is None:
        return None
    logs = JobLogReader(clients.logs, record.history[0].at, _SELECTION)
    try:
        lines, _ = logs.last([job_id(record.job.name)], LINES_READ)
    except service_errors():
        return None  # `logs` says why
    found = [line.at for line in lines if line.text.startswith(NEXT_ATTEMPT)]
    return JobRestarts(count=len(found), last_at=found[-1]) if found else None
