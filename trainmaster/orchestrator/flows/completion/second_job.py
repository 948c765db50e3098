"""A second job of a run is found and cancelled.

It comes of a function that was stopped between its last look at its lease and its submission, and woke up when
another had taken the run over. The one that woke writes nothing: its record has moved. It submits and then reads
the record; the other writes the record and then lists the jobs. So at least one of them sees both jobs, whatever
the order. If the one that woke dies in between, the sweep's second look finds its job, or the job's own log.
"""

from collections.abc import Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.admission.candidates import candidates_of, regions_of
from trainmaster.orchestrator.core.completion.outcome import OVER
from trainmaster.orchestrator.core.completion.record import second_jobs, with_second_job
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.stores.ledger import Held


def cancel_second_jobs(services: Services, held: Held, jobs: Sequence[Job]) -> Held:
    """The record, which tells of each second job among `jobs`; those that go on are asked to end. Safe to repeat.

    Raises:
        RecordMoved: the record kept changing.
    """
    for job in second_jobs(held.record, jobs):
        held = _told(services, held, job, jobs)
        if job.state not in OVER and held.record.submission.found_second(job.name):
            services.jobs.cancel(job.name)
    return held


def look_for_second_job(services: Services, held: Held) -> Held:
    """The same for every job that is labelled with the run."""
    return cancel_second_jobs(services, held, jobs_of(services, held.record))


def jobs_of(services: Services, record: RunRecord) -> Sequence[Job]:
    """Every job that is labelled with the run; it costs one listing of each region of its candidates."""
    candidates = candidates_of(record)
    return services.jobs.of_run(record.run_id, candidates[0].spec.kind, regions_of(candidates))


def second_look_done(services: Services, held: Held) -> Held:
    """The record after the sweep's one look, which is due no more."""
    held = look_for_second_job(services, held)
    submission = replace(held.record.submission, second_job_check_at=None)
    done = replace(held.record, submission=submission, attempt=services.attempt)
    return services.ledger.replace(held, done)


def _told(services: Services, held: Held, job: Job, jobs: Sequence[Job]) -> Held:
    """On record before the job is asked to end: one that is ending already is not told of again.

    Nothing is told of a job that a record which has moved meanwhile has for its own.
    """

    def told(record: RunRecord) -> RunRecord | None:
        if record.submission.found_second(job.name) or job not in second_jobs(record, jobs):
            return None
        return with_second_job(record, job, now=services.clock.now(), attempt=services.attempt)

    return services.ledger.update(held, told)
