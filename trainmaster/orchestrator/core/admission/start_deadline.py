"""When a run's job that does not start makes room for the next candidate, and what people see of it until then.

The clock is the job's own creation time. The last candidate is never given up: its place in the service's queue is worth
something, so it is only shown and logged.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainmaster.orchestrator.core.admission.candidates import candidates_of, current_candidate
from trainmaster.orchestrator.core.admission.waiting import may_wait
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.job_names import same_job
from trainmaster.orchestrator.core.runs.job import Job, JobState, Queued
from trainmaster.orchestrator.core.runs.record import GivingUp, RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

LOGGED_EVERY = timedelta(hours=1)
"""How long a job is queued before the log names it, and how long until it does so again."""
CANCELLED_WITHIN = timedelta(hours=1)
"""A cancellation that ends a job later than this after its start is not ours: ours was sent before the start."""
NAME_MAX_CHARS = 60
WHY = "start_deadline"
"""`why` of the abandoned job."""


def start_deadline(record: RunRecord) -> datetime | None:
    """When the run's job is given up if it has not started; None: never, or it has no job that is queued."""
    queued = queued_job(record)
    return queued.start_by if queued is not None else None


def queued_job(record: RunRecord) -> Queued | None:
    """The run's job, if it has not started, and what follows if it does not."""
    job = record.job
    if record.state is not RunState.SUBMITTED or job is None or job.create_time is None or not record.request:
        return None
    candidate, *later = candidates_of(record)[record.submission.candidate :] or [current_candidate(record)]
    queued = Queued(since=job.create_time, region=candidate.region)
    within_s = candidate.spec.scheduling.start_limit_s
    if not later or not within_s or record.cancel_requested_at is not None:
        return queued
    following = later[0].machines if later[0].region == candidate.region else later[0].region
    start_by = queued.since + timedelta(seconds=within_s)
    return replace(queued, next_candidate=cut(following, NAME_MAX_CHARS), start_by=start_by)


def with_start_overdue(record: RunRecord, job: Job, now: datetime) -> RunRecord:
    """The record, with its queued job being given up if that is due; otherwise the same object."""
    deadline = start_deadline(record)
    if deadline is None or now < deadline or not job.is_queued or is_given_up(record, job.name):
        return record
    if not may_wait(record, now):
        return record
    reason = f"it had not started by {deadline.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    giving_up = GivingUp(job=job.name, since=now, reason=reason)
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
