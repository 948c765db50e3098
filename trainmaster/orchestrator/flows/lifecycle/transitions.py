"""A recorded run enters a state: submitted, waiting, or ended without a job.

A second job of a run is detected and cancelled. It occurs when a function is suspended between its last check of the
lease and its submission, and resumes after another attempt has taken over the run. The resumed attempt writes nothing,
because its record has changed. It submits and then reads the record; the other attempt writes the record and then lists
the jobs. So at least one of them sees both jobs, in any order. If the resumed attempt crashes in between, the
reconciler's second check finds its job, or its list of active jobs does.
"""

from collections.abc import Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.admission.actual_cost import cost_without_job
from trainmaster.orchestrator.core.admission.candidates import candidates_of, regions_of
from trainmaster.orchestrator.core.admission.waiting import is_resting, waits
from trainmaster.orchestrator.core.errors import RecordMoved
from trainmaster.orchestrator.core.job_names import same_job
from trainmaster.orchestrator.core.runs import moves
from trainmaster.orchestrator.core.runs.end import Completion
from trainmaster.orchestrator.core.runs.job import Failure, Job
from trainmaster.orchestrator.core.runs.record import RunRecord, Waiting
from trainmaster.orchestrator.core.runs.states import OVER, RunState
from trainmaster.orchestrator.flows.lifecycle.finish import STEPS_WITHOUT_JOB, finish_run
from trainmaster.orchestrator.flows.lifecycle.slots import give_back, leave_queue, place_of, settle_cost
from trainmaster.orchestrator.flows.lifecycle.status import publish_states, show, with_warnings
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.ledger import Held


def job_of(services: Services, record: RunRecord) -> Job | None:
    """The run's job, in whichever region it was submitted; None if the service shows none."""
    return next((job for job in jobs_of(services, record) if moves.job_of_run(record, job)), None)


def record_submission(services: Services, held: Held, job: Job, what: str) -> FlowResult:
    """Record the job as the run's, unless the record says otherwise by now.

    Raises:
        RecordMoved: the record names no job.
    """
    services.ledger.mark_job(job.name)
    known = moves.with_job(held.record, job, now=services.clock.now(), attempt=services.attempt)
    publish_states(services, held.record, known)
    try:
        held = services.ledger.replace(held, known)
    except RecordMoved:
        # The job's end may have been recorded before its submission: then that record stands. Or this attempt was
        # suspended and the run taken over, and this job is the second one.
        held = services.ledger.present(held.record.run_id)
        record = held.record
        if record.job is None and not record.ended and not moves.gave_up(record, job.name):
            raise
        # The job that was found may be the run's, and the one from this attempt's lost response the second one.
        # One that was abandoned meanwhile had ended, whatever state the submission was answered with.
        is_abandoned = moves.gave_up(record, job.name)
        held = cancel_second_jobs(services, held, [] if is_abandoned else [job])
        held = look_for_second_job(services, held)
        if is_abandoned:
            return _wait_without_lease(services, held, job)
    else:
        leave_queue(services, held.record)
        if held.record.submission.second_job_check_at is not None:
            held = look_for_second_job(services, held)
    show(services, held)
    if held.record.job is None or not same_job(held.record.job.name, job.name):
        problem = held.record.problems[-1] if held.record.problems else f"{job.name} is not the run's"
        return FlowResult(message=problem, run_id=held.record.run_id, severity="WARNING")
    return FlowResult(message=f"{what}: {job.name}", run_id=held.record.run_id)


def _wait_without_lease(services: Services, held: Held, job: Job) -> FlowResult:
    """The job was given up before this attempt could record it: nothing else keeps the run from its next candidate."""

    def without_own_lease(record: RunRecord) -> RunRecord | None:
        lease = record.submission.lease
        if record.state is not RunState.WAITING or lease is None or lease.attempt != services.attempt:
            return None
        return moves.with_lease_given_back(record, services.clock.now())

    held = services.ledger.update(held, without_own_lease)
    is_due = not is_resting(held.record, services.clock.now())
    if waits := held.record.state is RunState.WAITING and is_due:
        services.queue.put(place_of(services, held.record))  # a pass that found the lease may have removed it
    show(services, held)
    message = f"{job.name} was given up before its submission was recorded"
    return FlowResult(message=message, run_id=held.record.run_id, severity="NOTICE", is_due=waits)


def fail_run(services: Services, held: Held, problem: Failure, faults: Sequence[str] = ()) -> FlowResult:
    """End the run without a job, because of `problem`."""
    record = replace(held.record, failure=problem, problems=(*held.record.problems, *faults))
    return _end_without_job(services, held, record, RunState.FAILED, problem.message, severity="ERROR")


def cancel_run(services: Services, held: Held) -> FlowResult:
    """End a run that was cancelled before it had a job."""
    message = "the run was cancelled before it had a job"
    return _end_without_job(services, held, held.record, RunState.CANCELLED, message, severity="INFO")


def _end_without_job(
    services: Services, held: Held, record: RunRecord, state: RunState, message: str, *, severity: str
) -> FlowResult:
    """End the run without a job; then look for one that an attempt that lost its lease submitted meanwhile.

    The reconciler looks once more, and removes the marker then.
    """
    before, now = held.record, services.clock.now()
    ended = moves.with_state(record, state, entered_at=now, now=now, attempt=services.attempt)
    cost = cost_without_job(record)
    ended = ended if cost is None else replace(ended, completion=Completion(cost=cost))
    finished = finish_run(services, services.ledger.replace(held, ended), STEPS_WITHOUT_JOB, before)
    if ended.submission.second_job_check_at is not None:
        look_for_second_job(services, finished.held)
    leaves_place = bool(before.admission.slots) or before.state is RunState.WAITING
    result = FlowResult(message=message, run_id=ended.run_id, severity=severity, is_due=leaves_place)
    return with_warnings(result, finished.problems)


def keep_waiting(
    services: Services,
    held: Held,
    waiting: Waiting,
    candidate: int,
    *,
    slots: Sequence[str],
    is_due: bool,
    event: LogEvent = LogEvent.RUN_WAITS,
) -> FlowResult:
    """The run waits. `slots` were taken but are not recorded."""
    now = services.clock.now()
    record = waits(held.record, waiting, candidate=candidate, now=now, attempt=services.attempt)
    put_in_queue(services, held, record, slots)
    result = FlowResult(message=f"the run is waiting: {waiting.reason}", run_id=record.run_id, event=event)
    return replace(result, severity="NOTICE", is_due=is_due)


def put_in_queue(services: Services, held: Held, waiting: RunRecord, slots: Sequence[str] = ()) -> None:
    """Write the place in the queue, the notice and the record; then free whatever the run held.

    `slots` were taken but are not recorded. A run before a retry has no place: the reconciler gives it one in time.

    A place without a matching record is removed by the next pass. A record whose place is missing, because another
    attempt removed it late, gets a new one from the reconciler.
    """
    if not is_resting(waiting, services.clock.now()):
        services.queue.put(place_of(services, waiting))
    publish_states(services, held.record, waiting)
    waits = services.ledger.replace(held, waiting)
    give_back(services, tuple(dict.fromkeys((*held.record.admission.slots, *slots))))
    show(services, waits)


def cancel_second_jobs(services: Services, held: Held, jobs: Sequence[Job]) -> Held:
    """The record, which names each second job among `jobs`; those that are still active are cancelled. Safe to repeat.

    Raises:
        RecordMoved: the record kept changing.
    """
    for job in moves.second_jobs(held.record, jobs):
        held = _record_second_jobs(services, held, job, jobs)
        if job.state not in OVER and moves.found_second(held.record, job.name):
            services.jobs.cancel(job.name)
    return held


def look_for_second_job(services: Services, held: Held) -> Held:
    """The same for every job that is labelled with the run."""
    return cancel_second_jobs(services, held, jobs_of(services, held.record))


def jobs_of(services: Services, record: RunRecord) -> Sequence[Job]:
    """Every job that is labelled with the run; it costs one listing of each region of its candidates."""
    candidates = candidates_of(record)
    return services.jobs.of_run(record.run_id, candidates[0].spec.kind, regions_of(candidates))


def finish_second_look(services: Services, held: Held) -> Held:
    """The record after the reconciler's one check, which is no longer due."""
    held = look_for_second_job(services, held)
    submission = replace(held.record.submission, second_job_check_at=None)
    done = replace(held.record, submission=submission, attempt=services.attempt)
    settle_cost(services, done)
    return services.ledger.replace(held, done)


def _record_second_jobs(services: Services, held: Held, job: Job, jobs: Sequence[Job]) -> Held:
    """Recorded before the job is cancelled; a job that is already ending is not recorded again.

    A job that a newer record names as the run's is left alone.
    """

    def with_job_on_record(record: RunRecord) -> RunRecord | None:
        if moves.found_second(record, job.name) or job not in moves.second_jobs(record, jobs):
            return None
        return moves.with_second_job(record, job, now=services.clock.now(), attempt=services.attempt)

    return services.ledger.update(held, with_job_on_record)
