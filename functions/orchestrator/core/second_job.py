"""A run has one job; which others bear its name, label and directory all the same."""

from collections.abc import Sequence

from orchestrator.core.names import RUN_LABEL, same_job
from orchestrator.core.run import Job, RunRecord
from orchestrator.core.settle.outcome import OVER


def second_jobs(record: RunRecord, jobs: Sequence[Job]) -> Sequence[Job]:
    """Those of `jobs`, oldest first, that are of the shape this run submits and must not go on.

    The job on record stays; none on record, the oldest, unless the run ended without one. Those that were given
    up have ended by themselves.
    A job that has ended, or is ending, harms nobody. One that bears the label alone is somebody else's.
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
        shaped = shaped[1:]
    return [job for job in shaped if job.state not in OVER]


def problem_of(record: RunRecord, job: Job) -> str:
    """What the record says of a second job."""
    stays = f"{record.job.name} goes on" if record.job else "the run has none"
    return f"a second job was found, {job.name}, and is cancelled; {stays}"
