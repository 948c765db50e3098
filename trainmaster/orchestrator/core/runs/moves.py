"""Changes of a record: between states and attempts, and by what the service reports about the run's jobs.

Vertex AI takes no request id, so an attempt that froze may submit a second job. The attempt that wakes
submits and then reads the record; the other one writes the record and then lists the jobs: at least one of
them sees both jobs. A second job is on record before it is cancelled, and is never adopted.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.job_names import same_job
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.runs.job import Job, RecordedJob
from trainmaster.orchestrator.core.runs.record import Lease, RunRecord, Step
from trainmaster.orchestrator.core.runs.states import ENDS, LEGAL_MOVES, OVER, PROGRESS, RunState


def with_state(
    record: RunRecord, state: RunState, *, entered_at: datetime, now: datetime, attempt: str
) -> RunRecord:
    """The record in another state, with its lease released.

    Raises:
        ValueError: the move is not legal; the caller did not check.
    """
    if state not in LEGAL_MOVES[record.state]:
        raise ValueError(f"a run cannot move from {record.state} to {state}")
    admission, submission = record.admission, replace(record.submission, lease=None)
    if state is not RunState.WAITING:
        admission = replace(admission, waiting=None, rate_limited_since=None)
    if state in ENDS and record.job is not None:
        submission = replace(submission, second_job_check_at=None)
    return replace(
        record,
        state=state,
        attempt=attempt,
        updated_at=now,
        admission=admission,
        submission=submission,
        history=(*record.history, Step(state=state, at=entered_at)),
    )


def taken_over(record: RunRecord, *, attempt: str, now: datetime, lease: timedelta) -> RunRecord:
    """The record with its lease taken by `attempt`; its state stays.

    The attempt that held the lease before may only be suspended, and still submit: once this lease has expired, the
    reconciler looks for its job.
    """
    until = now + lease
    held = Lease(attempt=attempt, expires_at=until)
    submission = replace(record.submission, lease=held, second_job_check_at=until)
    return replace(record, attempt=attempt, updated_at=now, submission=submission)


def with_lease_given_back(record: RunRecord, now: datetime) -> RunRecord:
    """The record with its lease over, for the next attempt to take it over and to look for a job first."""
    lease = record.submission.lease
    over = None if lease is None else replace(lease, expires_at=now)
    return replace(record, submission=replace(record.submission, lease=over), updated_at=now)


def live_lease(record: RunRecord, now: datetime) -> Lease | None:
    """The lease that keeps other attempts from taking over the run. None: any attempt may take it over."""
    lease = record.submission.lease
    return lease if lease is not None and lease.expires_at > now else None


def gave_up(record: RunRecord, job_name: str) -> bool:
    """Whether the job belonged to the run, and another one was to follow it."""
    return any(same_job(abandoned.job, job_name) for abandoned in record.submission.abandoned_jobs)


def found_second(record: RunRecord, job_name: str) -> bool:
    """Whether that job is recorded as a second one."""
    return job_name in record.submission.second_jobs


def job_of_run(record: RunRecord, job: Job) -> bool:
    """Whether `job` belongs to this run: labelled with it, and either the recorded job or of the shape we submit.

    A label alone proves nothing: any account that may create jobs can write any label. An abandoned job no longer
    belongs to the run, and a second job never does.
    """
    if gave_up(record, job.name) or found_second(record, job.name):
        return False
    if job.labels.get(RUN_LABEL) != record.run_id:
        return False
    return is_shaped(record, job) if record.job is None else same_job(record.job.name, job.name)


def is_shaped(record: RunRecord, job: Job) -> bool:
    """Whether the job has what we write into the run's job: label, name and directory."""
    job_is = (job.labels.get(RUN_LABEL), job.display_name, job.output_uri)
    return job_is == (record.run_id, record.run_id, record.output_uri)


def recorded_job(job: RecordedJob) -> RecordedJob:
    """What a record keeps of what the service reports."""
    return RecordedJob(**{field.name: getattr(job, field.name) for field in fields(RecordedJob)})


def with_job(record: RunRecord, job: RecordedJob, *, now: datetime, attempt: str) -> RunRecord:
    """The record with what the service reports about the job, and every state that its times prove.

    The states' times are the job's, so the record does not depend on the order in which events arrive.
    """
    recorded = recorded_job(job)
    recorded = replace(recorded, name=record.job.name if record.job else job.name)
    known = replace(record, job=recorded, attempt=attempt, updated_at=now)
    for state, entered_at in ((RunState.SUBMITTED, job.create_time), (RunState.RUNNING, job.start_time)):
        if entered_at is not None and PROGRESS[state] > PROGRESS[known.state]:
            known = with_state(known, state, entered_at=entered_at, now=now, attempt=attempt)
    if known.state in (RunState.RESERVED, RunState.WAITING):
        known = with_state(known, RunState.SUBMITTED, entered_at=now, now=now, attempt=attempt)
    return known


def second_jobs(record: RunRecord, jobs: Sequence[Job]) -> Sequence[Job]:
    """Those of `jobs`, oldest first, that have the shape of this run's submissions but are not its job.

    The recorded job stays. Without one, the oldest stays, unless the run ended without a job. Abandoned jobs that have
    ended are left out; one that had vanished may appear again. So are jobs that have only the label: another process
    created them.
    """
    shaped = [job for job in jobs if is_shaped(record, job)]
    shaped = [job for job in shaped if job.state not in OVER or not gave_up(record, job.name)]
    if record.job is not None:
        name = record.job.name
        shaped = [job for job in shaped if not same_job(name, job.name)]
    elif not record.ended:
        own = next((job for job in shaped if job_of_run(record, job)), None)
        shaped = [job for job in shaped if job is not own]
    return shaped


def with_second_job(record: RunRecord, job: Job, *, now: datetime, attempt: str) -> RunRecord:
    """The record with the second job's name, and a problem that describes it."""
    submission = replace(record.submission, second_jobs=(*record.submission.second_jobs, job.name))
    what = "it had already ended" if job.state in OVER else "it is being cancelled"
    own = f"the run's own is {record.job.name}" if record.job else "the run has none"
    problems = (*record.problems, f"a second job was found, {job.name}: {what}; {own}")
    return replace(record, submission=submission, problems=problems, updated_at=now, attempt=attempt)
