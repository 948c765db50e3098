"""A run on record gets its job, effectively once: rung by rung of its ladder, as far as it can go now.

The order of writes, and what a crash between two of them leaves:

    record    reserved or waiting, with a lease, and the rung that is submitted next: until the lease expires
              nobody else submits
    job       there is one, unrecorded: whoever takes the lease over finds it by its label
    notices   of the states entered; told again by whoever finds the job
    record    submitted: whoever comes now finds the job's name
    status    the user can see it; the event is acknowledged after this
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from orchestrator.core.admission.ladder import Rung
from orchestrator.core.attempts import Waiting
from orchestrator.core.deferral import Deferral, deferral_of
from orchestrator.core.errors import (
    LeaseHeld,
    LeaseTooShort,
    RecordMoved,
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
)
from orchestrator.core.launch.submission import submission_of
from orchestrator.core.names import RUN_LABEL, same_job
from orchestrator.core.run import (
    Job,
    Problem,
    RunRecord,
    RunState,
    job_of_run,
    may_submit,
    moved,
    taken_over,
    with_job,
)
from orchestrator.core.waiting import WAIT_IN_ALL, attempts_of, back_off, may_wait, short_pause, tried, waits
from orchestrator.flow.ladder import ladder_for, regions_of
from orchestrator.flow.second_job import cancel_second_jobs, look_for_second_job
from orchestrator.flow.services import Happened, Services
from orchestrator.flow.telling import tell_status, tell_steps, warned
from orchestrator.ports import Held

SUBMIT_NEEDS = timedelta(seconds=45)
"""What must be left of the lease before a submission starts; longer than the adapter's limit for all of it."""


def resume(services: Services, held: Held) -> Happened:
    """Bring a run on record as far as it can go now.

    Raises:
        LeaseHeld: somebody else is at it.
    """
    record = held.record
    if record.state not in (RunState.RESERVED, RunState.WAITING):
        tell_status(services, record)
        return Happened(message=f"the run is on record already, {record.state}", run_id=record.run_id)
    now = services.clock.now()
    if not may_submit(record, now):
        if record.lease is not None and record.lease.expires_at > now:
            raise LeaseHeld(record.run_id, record.lease.expires_at)
        tell_status(services, record)
        return Happened(message="the run waits for room", run_id=record.run_id)
    held = services.ledger.replace(
        held, taken_over(record, attempt=services.attempt, now=now, lease=services.lease)
    )
    ladder = ladder_for(services, record)
    job = _job_of(services, held.record, ladder)
    if job is None:
        return warned(submit(services, held, ladder), record)
    return warned(_submitted(services, held, job, "a job of this run was found and adopted"), record)


def submit(services: Services, held: Held, ladder: Sequence[Rung]) -> Happened:
    """Submit the run from the rung on record on, until one is taken; else the run waits.

    Raises:
        LeaseTooShort, SubmissionUnknown, RecordMoved: a later delivery must look again.
    """
    first = min(held.record.rung, len(ladder) - 1)
    refused, reason = None, ""
    for rung in ladder[first:]:
        if rung.number != first and _lease_left(services, held.record) < SUBMIT_NEEDS:
            return _wait(services, held, ladder, "the function's time was up", rung=rung)
        held = _on_record(services, held, rung)
        try:
            return _submit_rung(services, held, rung, ladder)
        except SubmissionRefused as refusal:
            held = _noted(services, held, rung, str(refusal))
            refused = refusal
        except SubmissionDeferred as deferral:
            if deferral_of(deferral.code, deferral.reason) is Deferral.TOO_FAST:
                return _pause(services, held, rung, deferral)
            held, reason = _noted(services, held, rung, str(deferral)), deferral.reason
    if refused is not None and not reason and first == 0:
        return _failed(services, held, refused)
    return _wait(services, held, ladder, reason or str(refused), rung=None)


def _noted(services: Services, held: Held, rung: Rung, outcome: str) -> Held:
    """The outcome goes on record with the next write."""
    return replace(held, record=tried(held.record, rung, outcome, services.clock.now()))


def _on_record(services: Services, held: Held, rung: Rung) -> Held:
    """The record that names the rung: before anything is submitted, for the job may have to be looked for."""
    if held.record.rung == rung.number:
        return held
    now = services.clock.now()
    record = replace(held.record, rung=rung.number, updated_at=now, attempt=services.attempt)
    return services.ledger.replace(held, record)


def _submit_rung(services: Services, held: Held, rung: Rung, ladder: Sequence[Rung]) -> Happened:
    # Importing the client and getting credentials have no limit of their own: they come before the look.
    services.prepare_jobs(rung.region)
    record = held.record
    left = _lease_left(services, record)
    if left < SUBMIT_NEEDS:
        raise LeaseTooShort(record.run_id, left.total_seconds())
    target = replace(services.target, region=rung.region)
    try:
        job = services.jobs.submit(submission_of(record.run_id, rung.spec, target))
    except SubmissionUnknown:
        found = _job_of(services, record, ladder)
        if found is None:
            # The service may show it a moment later: the lease keeps everybody off until it has.
            raise
        return _submitted(services, held, found, "the job was created, though its answer was lost")
    return _submitted(services, held, job, "the job was submitted")


def _lease_left(services: Services, record: RunRecord) -> timedelta:
    now = services.clock.now()
    return (record.lease.expires_at if record.lease else now) - now


def _job_of(services: Services, record: RunRecord, ladder: Sequence[Rung]) -> Job | None:
    jobs = services.jobs.of_run(record.run_id, ladder[0].spec.kind, regions_of(ladder))
    return next((job for job in jobs if job_of_run(record, job, RUN_LABEL)), None)


def _submitted(services: Services, held: Held, job: Job, what: str) -> Happened:
    known = with_job(held.record, job, now=services.clock.now(), attempt=services.attempt)
    tell_steps(services, held.record, known)
    try:
        held = services.ledger.replace(held, known)
    except RecordMoved:
        # The job's end may be on record before its submission; then that record stands. Or we were stopped
        # and taken over, and this job is the second one.
        held = present(services, held.record.run_id)
        record = held.record
        if record.job is None and not record.ended and not record.gave_up(job.name):
            raise
        held = cancel_second_jobs(services, held, [job])
    else:
        if held.record.second_look_at is not None:
            held = look_for_second_job(services, held)
    tell_status(services, held.record)
    if held.record.job is None or not same_job(held.record.job.name, job.name):
        problem = held.record.problems[-1] if held.record.problems else f"{job.name} is not the run's"
        return Happened(message=problem, run_id=held.record.run_id, severity="WARNING")
    return Happened(message=f"{what}: {job.name}", run_id=held.record.run_id)


def _failed(services: Services, held: Held, refusal: SubmissionRefused) -> Happened:
    now = services.clock.now()
    failed = moved(held.record, RunState.FAILED, entered_at=now, now=now, attempt=services.attempt)
    problem = Problem(message=f"Vertex AI refused the job: {refusal.reason}", code=refusal.code)
    held = services.ledger.replace(held, replace(failed, error=problem))
    tell_status(services, held.record)
    return Happened(message=str(refusal), run_id=held.record.run_id, severity="ERROR")


def _pause(services: Services, held: Held, rung: Rung, deferral: SubmissionDeferred) -> Happened:
    """The service asks for fewer requests: the same rung again, after a moment."""
    now = services.clock.now()
    attempts = attempts_of(held.record, (rung,))
    until = now + short_pause(held.record.run_id, now)
    waiting = Waiting(reason=deferral.reason, attempts=attempts, not_before=until, too_fast=True)
    return _waiting(services, held, waiting, rung.number, str(deferral))


def _wait(
    services: Services, held: Held, ladder: Sequence[Rung], reason: str, *, rung: Rung | None
) -> Happened:
    """The run waits on record: for the rung's turn, or with None, after the whole ladder, for a while."""
    now = services.clock.now()
    attempts = attempts_of(held.record, ladder)
    if rung is not None:
        waiting = Waiting(reason=reason, attempts=attempts, not_before=now)
        return _waiting(services, held, waiting, rung.number, reason)
    if not may_wait(held.record, now):
        return _failed(services, held, SubmissionRefused(0, f"no room for {WAIT_IN_ALL.days} days: {reason}"))
    pause = back_off(attempts + 1)
    waiting = Waiting(reason=reason, attempts=attempts + 1, not_before=now + pause)
    return _waiting(services, held, waiting, 0, reason)


def _waiting(services: Services, held: Held, waiting: Waiting, rung: int, why: str) -> Happened:
    now = services.clock.now()
    record = waits(held.record, waiting, rung=rung, now=now, attempt=services.attempt)
    tell_steps(services, held.record, record)
    held = services.ledger.replace(held, record)
    tell_status(services, held.record)
    return Happened(message=f"{why}; the run waits", run_id=record.run_id, severity="NOTICE")


def present(services: Services, run_id: str) -> Held:
    """The record, which was there a moment ago.

    Raises:
        RecordMoved: it is not.
    """
    held = services.ledger.find(run_id)
    if held is None:
        raise RecordMoved(run_id)
    return held
