"""What flows need of the world beside objects: the time, Vertex AI's jobs, their logs, and the topic of the notices."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from trainmaster.orchestrator.core.completion.explanation import LogEntry, LogQuery
from trainmaster.orchestrator.core.names import JobKind
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job


class Clock(Protocol):
    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...


class TrainingJobs(Protocol):
    """Vertex AI's jobs, in one project and the regions of the deployment."""

    def submit(self, submission: Submission) -> Job:
        """Create the job, in the region that the submission's parent names. Not idempotent: whoever repeats it gets a second job.

        Raises:
            SubmissionRefused: the service will never take it.
            SubmissionDeferred: the service has no room, or is not ready; no job was created.
            SubmissionUnknown: there may be a job; look with `of_run` before trying again.
        """
        ...

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        """The jobs of one kind in these regions labelled with the run, oldest first. Their trials are not read."""
        ...

    def read(self, name: str) -> Job:
        """The job as it is now.

        Raises:
            JobNotFound: there is none of that name.
        """
        ...

    def cancel(self, name: str) -> None:
        """Ask for the job's end; its state tells when. A job that has ended, or is none, stays as it is."""
        ...

    def with_id(self, job_id: str) -> Job:
        """The job of this project, of whatever region and kind: log entries do not tell the kind.

        Raises:
            JobNotFound: there is none of that id.
        """
        ...


class JobLogs(Protocol):
    """What jobs and their replicas wrote, in one project."""

    def read(self, query: LogQuery) -> Sequence[LogEntry]:
        """The last 1,000 entries at most, in any order: errors of replicas, and the service's own lines.

        With a replica in the query, the errors of that one alone. Of a log that arrives late, what is there.

        Raises:
            AccessDenied: this deployment may not read logs.
            ServiceFailed: the service gave no answer in a few seconds, or an error.
        """
        ...


class Notices(Protocol):
    """Where runs, champions and rules are told of."""

    def publish(self, notice: Notice) -> None:
        """Tell it; returns once the service has it. Subscribers may see it more than once."""
        ...
