"""Services besides objects: the time, Vertex AI's jobs, their logs and machines, and the topic for notices."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from trainmaster.orchestrator.core.champions.registration import ModelUpload, ModelVersion
from trainmaster.orchestrator.core.completion.experiment import ExperimentRun
from trainmaster.orchestrator.core.completion.explanation import LogEntry, LogQuery
from trainmaster.orchestrator.core.completion.machine_metrics import MetricQuery, MetricSeries
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.notices.deliveries import Answer
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.notices.payloads import Post
from trainmaster.orchestrator.core.policy.pools import PoolState
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job


class Clock(Protocol):
    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after that time."""
        ...

    def processor_s(self) -> float:
        """The processor time that the calling thread has used so far, in seconds."""
        ...


class TrainingJobs(Protocol):
    """Vertex AI's jobs, in one project and the regions of the deployment."""

    def submit(self, submission: Submission) -> Job:
        """Create the job in the region that the submission's parent names.

        Not idempotent: a second call creates a second job.

        Raises:
            SubmissionRefused: the service will never accept it.
            SubmissionDeferred: the service has no room, or is not ready; no job was created.
            SubmissionUnknown: there may be a job; look for it with `of_run` before trying again.
        """
        ...

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        """The jobs of one kind in these regions labelled with the run, oldest first. Their trials are not read.

        Raises:
            ServiceFailed: there are more than a run can have. The list is never cut.
        """
        ...

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:
        """The jobs of one kind in this region that have the label of a run and have not ended, in few calls.

        With name, state, labels and times, without trials and output directory. The list may lack a job: it is made a
        moment ago, or one of too many.
        """
        ...

    def read(self, name: str) -> Job:
        """The job as it is now.

        Raises:
            JobNotFound: no job has that name.
        """
        ...

    def cancel(self, name: str) -> None:
        """Request the job's cancellation; its state shows when it has ended. No effect on an ended or missing job."""
        ...

    def pool_states(self, region: str) -> Sequence[PoolState]:
        """The persistent resources in the region."""
        ...

    def delete_pool(self, name: str) -> None:
        """Begin to delete a persistent resource, which cancels its jobs. No effect on a missing one."""
        ...

    def keep_experiment_run(self, run: ExperimentRun) -> None:
        """Make it a run of its experiment, which is created if it does not exist. Safe to repeat: its id is the run's.

        Raises:
            ServiceFailed: among others, the project has no metadata store yet, and one is being created.
        """
        ...


class ModelRegistry(Protocol):
    """Vertex AI's Model Registry, in the deployment's project and region. Every call may raise ServiceFailed."""

    def versions_of_run(self, model_id: str, run_id: str) -> Sequence[ModelVersion] | None:
        """The model's versions with the label of the run, lowest first; None if there is no such model."""
        ...

    def upload(self, upload: ModelUpload, *, is_first: bool) -> str | None:
        """Begin to add a version, and return the operation's name. Not idempotent: a second call adds a second version.

        With `is_first` the version comes with its model; None if the model exists, or is being made.
        """
        ...

    def why_upload_failed(self, operation: str) -> str:
        """The service's reason; empty while the upload is under way, and after it has succeeded or is forgotten."""
        ...

    def version_with_alias(self, model_id: str, alias: str) -> ModelVersion | None:
        """The version that has the alias."""
        ...

    def change_alias(self, version: ModelVersion, change: str) -> None:
        """Give the version an alias, which any other version of the model loses; with a leading `-`, take it away."""
        ...


class JobLogs(Protocol):
    """What jobs and their replicas wrote, in one project."""

    def read(self, query: LogQuery) -> Sequence[LogEntry]:
        """At most the last 1,000 entries, in any order: errors of replicas, and the service's own lines.

        With a replica in the query, only that replica's errors. If the log arrives late, what has arrived.

        Raises:
            AccessDenied: this deployment may not read logs.
            ServiceFailed: the service did not answer within a few seconds, or reported an error.
        """
        ...

    def silent_jobs(self, job_ids: Sequence[str], since: datetime) -> Sequence[str]:
        """Which of these jobs have logged nothing since then, of those of which that is sure, in a few reads for all.

        Raises:
            AccessDenied: this deployment may not read logs.
            ServiceFailed: the service did not answer within a few seconds, or reported an error.
        """
        ...


class MachineMetrics(Protocol):
    """What the machines of jobs do, in one project."""

    def list_time_series(self, query: MetricQuery) -> Sequence[MetricSeries]:
        """The series of one metric; empty if no job has reported any.

        Raises:
            AccessDenied: this deployment may not read metrics.
            ServiceFailed: the service did not answer within a few seconds, or reported an error.
        """
        ...


class Notices(Protocol):
    """Publishes changes of runs, champions and rules."""

    def publish(self, notice: Notice) -> None:
        """Publish the notice; returns once the service has accepted it. Subscribers may receive it more than once."""
        ...


class Receivers(Protocol):
    """Receivers of notices outside Google Cloud. No method raises: an error's text could quote a secret."""

    def secret(self, name: str) -> str | None:
        """The current value of the secret; None if it is missing, or more than a line of ASCII."""
        ...

    def post(self, post: Post) -> Answer:
        """Send it once, within 10 seconds, and to public addresses only; redirects are not followed."""
        ...
