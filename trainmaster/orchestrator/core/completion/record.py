"""What the record says of the run's end, and of jobs that bear its name and are not its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.orchestrator.core.completion.outcome import OVER, Outcome
from trainmaster.orchestrator.core.names import same_job
from trainmaster.orchestrator.core.runs.end import Completion, EndReport
from trainmaster.orchestrator.core.runs.job import Failure, Job
from trainmaster.orchestrator.core.runs.moves import is_shaped, moved, with_job
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState


def settled(
    record: RunRecord, job: Job, outcome: Outcome, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The ended record.

    Raises:
        ValueError: the record had ended before.
    """
    known = with_job(record, job, now=now, attempt=attempt)
    ended = moved(known, outcome.state, entered_at=now, now=now, attempt=attempt)
    return replace(
        ended,
        model=outcome.model,
        tuning=outcome.tuning,
        failure=outcome.failure,
        problems=(*record.problems, *outcome.problems),
        completion=Completion(reported_by=report, durations_s=durations_s(record.source.event_time, job)),
    )


def seen_going_on(record: RunRecord, job: Job, *, now: datetime, attempt: str) -> RunRecord | None:
    """The record with what the job's times newly prove; None when they prove nothing new."""
    known = with_job(record, job, now=now, attempt=attempt)
    return known if known.state is not record.state else None


def durations_s(asked_at: datetime, job: Job) -> Mapping[str, float]:
    """Seconds from the request to the job, in the queue, at work, and over all; only those that are known."""
    marks = (
        ("until_job", asked_at, job.create_time),
        ("queued", job.create_time, job.start_time),
        ("running", job.start_time, job.end_time),
        ("total", asked_at, job.end_time),
    )
    return {
        name: round((end - start).total_seconds(), 3)
        for name, start, end in marks
        if start is not None and end is not None
    }


def job_vanished(
    record: RunRecord, failure: Failure, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The record of a run whose job is no longer there to be asked."""
    ended = moved(record, RunState.FAILED, entered_at=now, now=now, attempt=attempt)
    return replace(ended, failure=failure, completion=Completion(reported_by=report))


def second_jobs(record: RunRecord, jobs: Sequence[Job]) -> Sequence[Job]:
    """Those of `jobs`, oldest first, that are of the shape this run submits and are not its own.

    The job on record stays; none on record, the oldest, unless the run ended without one. Those that were
    given up have ended by themselves.
    One that bears the label alone is somebody else's.
    """
    shaped = [job for job in jobs if is_shaped(record, job) and not record.submission.gave_up(job.name)]
    if record.job is not None:
        name = record.job.name
        shaped = [job for job in shaped if not same_job(name, job.name)]
    elif not record.ended:
        own = next((job for job in shaped if not record.submission.found_second(job.name)), None)
        shaped = [job for job in shaped if job is not own]
    return shaped


def with_second_job(record: RunRecord, job: Job, *, now: datetime, attempt: str) -> RunRecord:
    """The record that names the second job, and says so in its problems."""
    submission = replace(record.submission, second_jobs=(*record.submission.second_jobs, job.name))
    problems = (*record.problems, _problem_of(record, job))
    return replace(record, submission=submission, problems=problems, updated_at=now, attempt=attempt)


def _problem_of(record: RunRecord, job: Job) -> str:
    what = "it had ended by itself" if job.state in OVER else "it is cancelled"
    own = f"the run's own is {record.job.name}" if record.job else "the run has none"
    return f"a second job was found, {job.name}: {what}; {own}"
