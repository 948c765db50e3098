"""Follows the log of a run until the run has ended and its last lines have arrived."""

import time
from dataclasses import replace
from datetime import UTC, datetime

from trainmaster.client.clients import Clients
from trainmaster.client.errors import NotFound
from trainmaster.client.find import Run, find_run, read_run
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import LATE, JobLogReader, Selection
from trainmaster.client.logs.survive import survive_restarts
from trainmaster.orchestrator.core.completion.explanation import without_log_link
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.runs.end import SMOKE, FollowUp
from trainmaster.orchestrator.core.runs.record import RunRecord

RETRY_S = 1.0
"""How long one read of the record is repeated by the client, before it is checked whether the stack was stopped."""
SETTLED_S, LOCAL_SETTLED_S = 10.0, 3.0
"""How long after a run's end its last lines are awaited."""


def find_run_to_follow(clients: Clients, text: str, *, deadline: float | None = None) -> Run:
    """As `find_run`, also while the services restart.

    Raises:
        NotFound: no run was started by anything of that name.
        TimedOut, NoStack, google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: as
            `survive_restarts`.
    """
    return survive_restarts(
        clients.context, lambda: find_run(clients, text, retry_s=RETRY_S), deadline=deadline
    )


def read_again(clients: Clients, run: Run, *, deadline: float | None = None) -> Run:
    """The run as it is now, also while the services restart; raises what `find_run_to_follow` does."""
    return survive_restarts(
        clients.context, lambda: read_run(clients, run.record.run_id, retry_s=RETRY_S), deadline=deadline
    )


def step_job_name(record: RunRecord, step: str) -> str:
    """The name of the job that scored the run's model, or tried it out: of the step `evaluation` or `smoke`.

    Raises:
        NotFound: there is no such job, or none yet; the message says why, if the record does.
    """
    title = "smoke test" if step == SMOKE else step
    found: FollowUp | None = getattr(record.completion, step, None)
    if found is None:
        raise NotFound(f"{record.run_id} has no {title}. Its other steps: trainmaster why {record.run_id}")
    if found.job is None:
        why = f": {found.failure}" if found.failure else " yet: look again in a minute."
        raise NotFound(f"The {title} of {record.run_id} has no job{why}")
    return found.job.name


class RunLog:
    """The log of one run, whichever jobs the run has had, or of one job after its end, and its record."""

    def __init__(
        self, clients: Clients, run: Run, selection: Selection | None = None, *, step: str | None = None
    ) -> None:
        """`step`: only its job; raises what `step_job_name` does."""
        self.run = run
        self._own_job = None if step is None else step_job_name(run.record, step)
        self._clients = clients
        self._logs = JobLogReader(clients.logs, run.record.history[0].at, selection)
        self._settled_at: float | None = None
        self._saw_end = False

    @property
    def job_ids(self) -> list[str]:
        """Of the run's jobs, oldest first: those that another followed, and the last. Empty while it has none."""
        record = self.run.record
        if self._own_job is not None:
            return [job_id(self._own_job)]
        names = [job.job for job in record.submission.abandoned_jobs]
        names += [record.job.name] if record.job else []
        return [job_id(name) for name in names]

    @property
    def is_over(self) -> bool:
        """Whether the run has ended and no further line is expected."""
        if not self.run.record.ended:
            return False
        is_local = self._clients.context.state is not None
        if not self.job_ids or datetime.now(UTC) - self.run.record.history[-1].at > LATE:
            return True
        if is_local and self._saw_end:  # the local stack writes lines in order
            return True
        if self._settled_at is None:
            self._settled_at = time.monotonic() + (LOCAL_SETTLED_S if is_local else SETTLED_S)
        return time.monotonic() > self._settled_at

    def last(self, limit: int) -> tuple[list[LogLine], bool]:
        """The last lines, oldest first, and whether earlier ones were left out; see `JobLogs.last`."""
        lines, left_out = self._logs.last(self.job_ids, limit)
        return self._note_lines(lines), left_out

    def look(self) -> list[LogLine]:
        """Lines that were not returned yet, after `run` was read again.

        Raises:
            google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: a service does not answer.
        """
        if not self.run.record.ended:
            self.run = read_run(self._clients, self.run.record.run_id, retry_s=RETRY_S)
        return self._note_lines(self._logs.new(self.job_ids))

    def _note_lines(self, lines: list[LogLine]) -> list[LogLine]:
        """The lines, those of the local stack without the link to the Cloud console, which has no page for its jobs."""
        last = self.job_ids[-1:]
        self._saw_end = self._saw_end or any(line.ends_job and line.job_id in last for line in lines)
        if self._clients.context.state is None:
            return lines
        return [
            replace(line, payload=without_log_link(line.payload)) if isinstance(line.payload, str) else line
            for line in lines
        ]
