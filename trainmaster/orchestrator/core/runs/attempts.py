"""What a run went through before it had a job that ran: admission and submission."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.names import same_job

TRIES_KEPT = 50
REASON_MAX_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Why there is no job yet, and when the next attempt is due."""

    reason: str
    attempts: int
    """How often all candidates were tried."""
    not_before: datetime
    rate_limited: bool = False
    """The service asked for fewer requests: until `not_before`, no run is submitted to that region."""
    limit: str | None = None
    """The full limit under which the run waits for a slot; it delays no other run."""


@dataclass(frozen=True, kw_only=True)
class AdmissionState:
    """What the run holds under the policy's limits, and why it waits."""

    waiting: Waiting | None = None
    slots: tuple[str, ...] = ()
    """Slots held under limits: LIMIT/NUMBER@GENERATION, the generation being that of the slot's object."""
    refused_since: datetime | None = None
    """When the service first had no room for the run."""
    rate_limited_since: datetime | None = None
    """Since when the service has only asked for fewer requests."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Until `expires_at`, only the attempt named here may submit the run's job."""

    attempt: str
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class AbandonedJob:
    """A job that ended for want of capacity before it ran: no longer the run's, and no second job either."""

    job: str
    candidate: int
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Try:
    """A candidate that had no room for the run, and why."""

    candidate: int
    text: str
    at: datetime
    outcome: str


@dataclass(frozen=True, kw_only=True)
class SubmissionState:
    """How far the submission of the run's job is."""

    lease: Lease | None = None
    """Who may submit the job, and until when."""
    candidate: int = 0
    """The number of the candidate that was submitted last, or is submitted next."""
    tries: tuple[Try, ...] = ()
    """The last TRIES_KEPT candidates that had no room for the run, oldest first."""
    abandoned_jobs: tuple[AbandonedJob, ...] = ()
    """Jobs that found no capacity, oldest first; each began another round."""
    second_jobs: tuple[str, ...] = ()
    """Names of jobs that were submitted for this run beside its own, and cancelled."""
    unanswered: int = 0
    """Submissions in a row that got no answer."""
    second_job_check_at: datetime | None = None
    """When the sweep looks once for a job of an attempt that lost its lease; also after an end without a job."""

    def found_second(self, job_name: str) -> bool:
        """Whether that job was found to be a second one."""
        return job_name in self.second_jobs

    def gave_up(self, job_name: str) -> bool:
        return any(same_job(each.job, job_name) for each in self.abandoned_jobs)


def shortened(reason: str) -> str:
    """The reason as records keep it: the service's words come with long links."""
    return reason if len(reason) <= REASON_MAX_CHARS else f"{reason[: REASON_MAX_CHARS - 1]}…"
