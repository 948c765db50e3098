"""When a run's job that does not start makes room for the next candidate, and what people see of it until then.

The clock is the job's own creation time. The last candidate is never given up: its place in the service's queue is worth
something, so it is only shown and logged.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.admission.candidates import Candidate, candidates_of, current_candidate
from trainmaster.orchestrator.core.admission.waiting import may_wait
from trainmaster.orchestrator.core.job_names import same_job
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.record import GivingUp, RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

LOGGED_EVERY = timedelta(hours=1)
"""How long a job is queued before the log names it, and how long until it does so again."""
CANCELLED_WITHIN = timedelta(hours=1)
"""A cancellation that ends a job later than this after its start is not ours: ours was sent before the start."""
WHY = "start_deadline"
"""`why` of the abandoned job."""


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A job that the service has not started. Without a `next_candidate`, no other follows, and there is no `start_by`."""

    since: datetime
    region: str
    next_candidate: str | None = None
    """What differs: the region, or the machines."""
    start_by: datetime | None = None


def start_deadline(record: RunRecord) -> datetime | None:
    """When the run's job is given up if it has not started; None: never, or it has no job that is queued."""
    job, since = record.job, record.job.create_time if record.job else None
    if record.state is not RunState.SUBMITTED or record.cancel_requested_at is not None:
        return None
    if job is None or since is None or job.start_time is not None or _next_candidate(record) is None:
        return None
    within_s = current_candidate(record).spec.scheduling.start_limit_s
    return since + timedelta(seconds=within_s) if within_s else None


def queued_job(record: RunRecord) -> Queued | None:
    """The run's job, if it has not started."""
    job = record.job
    if record.state is not RunState.SUBMITTED or job is None or job.create_time is None or not record.request:
        return None
    queued = Queued(since=job.create_time, region=current_candidate(record).region)
    start_by, following = start_deadline(record), _next_candidate(record)
    if start_by is None or following is None:
        return queued
    name = following.machines if following.region == queued.region else following.region
    return replace(queued, next_candidate=name, start_by=start_by)


def _next_candidate(record: RunRecord) -> Candidate | None:
    if record.request is None:
        return None
    return next(iter(candidates_of(record)[record.submission.candidate + 1 :]), None)


def with_start_overdue(record: RunRecord, job: Job, now: datetime) -> RunRecord:
    """The record, with its queued job being given up if that is due; otherwise the same object."""
    deadline = start_deadline(record)
    is_due = deadline is not None and deadline <= now and job.is_queued and may_wait(record, now)
    if not is_due or is_given_up(record, job.name):
        return record
    within_s = current_candidate(record).spec.scheduling.start_limit_s
    giving_up = GivingUp(job=job.name, since=now, reason=f"it had not started after {within_s} s")
    return replace(record, submission=replace(record.submission, giving_up=giving_up))


def is_given_up(record: RunRecord, job_name: str) -> bool:
    """Whether another candidate follows this job of the run, unless it starts first. An order to cancel the run counts more."""
    giving_up = record.submission.giving_up
    is_its = giving_up is not None and same_job(giving_up.job, job_name)
    return is_its and record.cancel_requested_at is None


def is_being_given_up(record: RunRecord, job: Job) -> bool:
    """Whether the job must be cancelled: it is given up, and has not started as far as is known."""
    return is_given_up(record, job.name) and record.state is RunState.SUBMITTED and job.is_queued


def ended_given_up(record: RunRecord, job: Job) -> bool:
    """Whether the job ended because it was given up: without having started, or by our cancellation soon after its start."""
    if not is_given_up(record, job.name):
        return False
    if not job.has_started:
        return job.state in (JobState.CANCELLED, JobState.FAILED, JobState.EXPIRED)
    # A tuning without a start of its own has only its trials'.
    started = job.start_time or min(trial.start_time for trial in job.trials if trial.start_time is not None)
    is_soon = job.end_time is not None and job.end_time - started <= CANCELLED_WITHIN
    return job.state is JobState.CANCELLED and is_soon


def is_log_due(record: RunRecord, job: Job, now: datetime) -> bool:
    """Whether the log must name the job among those that do not start."""
    since = record.submission.not_started_logged_at or job.create_time
    return job.is_queued and since is not None and now - since >= LOGGED_EVERY
