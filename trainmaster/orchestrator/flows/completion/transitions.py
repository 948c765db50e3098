"""A run on record enters a state: submitted, waiting, or ended without a job.

A second job of a run is found and cancelled. It comes of a function that was stopped between its last look at its lease
and its submission, and woke up when another had taken the run over. The one that woke writes nothing: its record has
moved. It submits and then reads the record; the other writes the record and then lists the jobs. So at least one of
them sees both jobs, whatever the order. If the one that woke dies in between, the reconciler's second look finds its job, or
the job's own log.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from trainmaster.orchestrator.core.admission.waiting import waits
from trainmaster.orchestrator.core.errors import RecordMoved
from trainmaster.orchestrator.core.names import same_job
from trainmaster.orchestrator.core.requests.candidates import candidates_of, regions_of
from trainmaster.orchestrator.core.runs.job import Failure, Job
from trainmaster.orchestrator.core.runs.moves import (
    found_second,
    gave_up,
    job_of_run,
    moved,
    second_jobs,
    with_job,
    with_second_job,
)
from trainmaster.orchestrator.core.runs.record import RunRecord, Waiting
from trainmaster.orchestrator.core.runs.states import OVER, RunState
from trainmaster.orchestrator.flows.completion.finish import finish_run
from trainmaster.orchestrator.flows.completion.status import publish_states, warned, write_status
from trainmaster.orchestrator.flows.queue import give_back, leave_queue, place_of
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.ledger import Held


def job_of(services: Services, record: RunRecord) -> Job | None:
    """The run's job, in whichever region it was submitted; None where the service shows none."""
    return next((job for job in jobs_of(services, record) if job_of_run(record, job)), None)


def submitted(services: Services, held: Held, job: Job, what: str, *, is_only: bool = True) -> FlowResult:
    """The job is the run's, on record, unless the record says otherwise by now.

    `is_only`: whoever holds the lease asked for no other job, which may be to be seen only later.

    Raises:
        RecordMoved: it says nothing of any job.
    """
    known = with_job(held.record, job, now=services.clock.now(), attempt=services.attempt)
    publish_states(services, held.record, known)
    try:
        held = services.ledger.replace(held, known)
    except RecordMoved:
        # The job's end may be on record before its submission; then that record stands. Or we were stopped
        # and taken over, and this job is the second one.
        held = services.ledger.present(held.record.run_id)
        record = held.record
        if record.job is None and not record.ended and not gave_up(record, job.name):
            raise
        # The one that was found may be the run's, and ours, whose answer never came, the second one.
        held = look_for_second_job(services, cancel_second_jobs(services, held, [job]))
        if is_only and _is_given_up(held.record, job):
            return _given_up(services, held, job)
    else:
        leave_queue(services, held.record)
        if held.record.submission.second_job_check_at is not None:
            held = look_for_second_job(services, held)
    write_status(services, held)
    if held.record.job is None or not same_job(held.record.job.name, job.name):
        problem = held.record.problems[-1] if held.record.problems else f"{job.name} is not the run's"
        return FlowResult(message=problem, run_id=held.record.run_id, severity="WARNING")
    return FlowResult(message=f"{what}: {job.name}", run_id=held.record.run_id)


def _is_given_up(record: RunRecord, job: Job) -> bool:
    return record.job is None and not record.ended and gave_up(record, job.name)


def _given_up(services: Services, held: Held, job: Job) -> FlowResult:
    """The job found no capacity before it was on record: the lease, if it is still ours, keeps nobody off any more."""
    record, now = held.record, services.clock.now()
    lease = record.submission.lease
    if lease is not None and lease.attempt == services.attempt:
        submission = replace(record.submission, lease=None)
        free = replace(record, submission=submission, updated_at=now, attempt=services.attempt)
        with suppress(RecordMoved):
            held = services.ledger.replace(held, free)
    write_status(services, held)
    message = f"{job.name} found no capacity before it was on record"
    return FlowResult(
        message=message,
        run_id=record.run_id,
        severity="NOTICE",
        is_due=True,
        event=LogEvent.RUN_WAITS,
    )


def failed(services: Services, held: Held, problem: Failure, faults: Sequence[str] = ()) -> FlowResult:
    """The run ended without a job, because of `problem`."""
    record = replace(held.record, failure=problem, problems=(*held.record.problems, *faults))
    return _ended(services, held, record, RunState.FAILED, problem.message, severity="ERROR")


def cancelled(services: Services, held: Held) -> FlowResult:
    """The run was to end, and has no job."""
    message = "the run was cancelled before it had a job"
    return _ended(services, held, held.record, RunState.CANCELLED, message, severity="INFO")


def _ended(
    services: Services, held: Held, record: RunRecord, state: RunState, message: str, *, severity: str
) -> FlowResult:
    """The end without a job; then one is looked for that somebody who lost his lease submitted meanwhile.

    The reconciler looks once more, and removes the marker then.
    """
    before, now = held.record, services.clock.now()
    ended = moved(record, state, entered_at=now, now=now, attempt=services.attempt)
    finished = finish_run(services, services.ledger.replace(held, ended), before)
    if ended.submission.second_job_check_at is not None:
        look_for_second_job(services, finished.held)
    leaves_place = bool(before.admission.slots) or before.state is RunState.WAITING
    result = FlowResult(message=message, run_id=ended.run_id, severity=severity, is_due=leaves_place)
    return warned(result, finished.problems)


def kept_waiting(
    services: Services,
    held: Held,
    waiting: Waiting,
    candidate: int,
    *,
    slots: Sequence[str] = (),
    is_due: bool = False,
) -> FlowResult:
    """The run waits. `slots` were taken and are not on record."""
    now = services.clock.now()
    record = waits(held.record, waiting, candidate=candidate, now=now, attempt=services.attempt)
    put_in_queue(services, held, record, slots)
    return FlowResult(
        message=f"the run waits: {waiting.reason}",
        run_id=record.run_id,
        severity="NOTICE",
        is_due=is_due,
        event=LogEvent.RUN_WAITS,
    )


def put_in_queue(services: Services, held: Held, waiting: RunRecord, slots: Sequence[str] = ()) -> None:
    """The place in the queue, the notice, the record; then whatever the run held is free again.

    `slots` were taken and are not on record.

    A place without a record that says so is removed by the next pass; a record without a place, which another
    attempt may have taken away late, is given one by the reconciler.
    """
    services.queue.put(place_of(services, waiting))
    publish_states(services, held.record, waiting)
    waits = services.ledger.replace(held, waiting)
    give_back(services, tuple(dict.fromkeys((*held.record.admission.slots, *slots))))
    write_status(services, waits)


def cancel_second_jobs(services: Services, held: Held, jobs: Sequence[Job]) -> Held:
    """The record, which tells of each second job among `jobs`; those that go on are asked to end. Safe to repeat.

    Raises:
        RecordMoved: the record kept changing.
    """
    for job in second_jobs(held.record, jobs):
        held = _record_second_jobs(services, held, job, jobs)
        if job.state not in OVER and found_second(held.record, job.name):
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
    """The record after the reconciler's one look, which is due no more."""
    held = look_for_second_job(services, held)
    submission = replace(held.record.submission, second_job_check_at=None)
    done = replace(held.record, submission=submission, attempt=services.attempt)
    return services.ledger.replace(held, done)


def _record_second_jobs(services: Services, held: Held, job: Job, jobs: Sequence[Job]) -> Held:
    """On record before the job is asked to end: one that is ending already is not told of again.

    Nothing is told of a job that a record which has moved meanwhile has for its own.
    """

    def recorded(record: RunRecord) -> RunRecord | None:
        if found_second(record, job.name) or job not in second_jobs(record, jobs):
            return None
        return with_second_job(record, job, now=services.clock.now(), attempt=services.attempt)

    return services.ledger.update(held, recorded)
