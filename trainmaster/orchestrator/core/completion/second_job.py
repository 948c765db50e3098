"""A run has one job; which others bear its name, label and directory all the same."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.orchestrator.core.completion.outcome import OVER
from trainmaster.orchestrator.core.names import RUN_LABEL, same_job
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.record import RunRecord


def second_jobs(record: RunRecord, jobs: Sequence[Job]) -> Sequence[Job]:
    """Those of `jobs`, oldest first, that are of the shape this run submits and are not its own.

    The job on record stays; none on record, the oldest, unless the run ended without one. Those that were
    given up have ended by themselves.
    One that bears the label alone is somebody else's.
    """
    shaped = [
        job
        for job in jobs
        if job.labels.get(RUN_LABEL) == record.run_id
        and job.display_name == record.run_id
        and job.output_uri == record.output_uri
        and not record.submission.gave_up(job.name)
    ]
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
