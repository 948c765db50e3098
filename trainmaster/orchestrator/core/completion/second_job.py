"""A run has one job; which others bear its name, label and directory all the same."""

from collections.abc import Sequence

from trainmaster.orchestrator.core.completion.outcome import OVER
from trainmaster.orchestrator.core.names import RUN_LABEL, same_job
from trainmaster.orchestrator.core.runs.record import Job, RunRecord, second_job_found


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
        and not record.gave_up(job.name)
    ]
    if record.job is not None:
        name = record.job.name
        shaped = [job for job in shaped if not same_job(name, job.name)]
    elif not record.ended:
        own = next((job for job in shaped if not record.found_second(job.name)), None)
        shaped = [job for job in shaped if job is not own]
    return shaped


def problem_of(record: RunRecord, job: Job) -> str:
    """What the record says of a second job, when it is found."""
    what = "it had ended by itself" if job.state in OVER else "it is cancelled"
    own = f"the run's own is {record.job.name}" if record.job else "the run has none"
    return f"{second_job_found(job.name)}{what}; {own}"
