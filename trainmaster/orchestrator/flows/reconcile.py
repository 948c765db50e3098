"""Finds what no event reported: every marked run is checked. The cost grows with the number of active runs.

Oldest first. A pass that runs out of time logs how many runs are left, and the next one begins with them.
"""

from collections.abc import Iterable, Iterator

from trainmaster.orchestrator.core.admission.start_deadline import is_given_up, start_deadline
from trainmaster.orchestrator.core.admission.waiting import is_resting
from trainmaster.orchestrator.core.completion.outcome import job_vanished
from trainmaster.orchestrator.core.completion.steps import all_over
from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.errors import JobNotFound, LeaseHeld, RecordDamaged, RecordUnsupported
from trainmaster.orchestrator.core.runs.end import EndReport
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.moves import live_lease
from trainmaster.orchestrator.core.runs.states import OVER, RunState
from trainmaster.orchestrator.flows.completion.complete import STEPS, complete_run, try_elsewhere
from trainmaster.orchestrator.flows.lifecycle.finish import finish_run
from trainmaster.orchestrator.flows.lifecycle.follow_up import VANISHED_AGE
from trainmaster.orchestrator.flows.lifecycle.slots import ORPHAN_AGE
from trainmaster.orchestrator.flows.lifecycle.status import add_row, with_warnings
from trainmaster.orchestrator.flows.lifecycle.transitions import finish_second_look, look_for_second_job
from trainmaster.orchestrator.flows.listed_jobs import ListedJobs
from trainmaster.orchestrator.flows.queue_pass import admit
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.resume import resume, take_over
from trainmaster.orchestrator.flows.turns import (
    ATTEMPTS_MAX,
    RUNS_SHARE,
    Done,
    Turns,
    error_text,
    run_item,
    severity_of,
)
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.attempts import ItemKind
from trainmaster.orchestrator.stores.ledger import Held, Marker

REPORT = EndReport(by="reconcile")


def reconcile(services: Services, turns: Turns, active: Iterable[Marker]) -> Iterator[FlowResult]:
    """Check every active run once, then walk the queue. No run can cost another its turn.

    `turns`: those of the tick that makes the pass.
    """
    waiting: list[Held] = []
    made_room = False
    for result in _look_at_all(services, turns, active, waiting):
        made_room = made_room or result.made_room
        yield result
    yield from admit(services, room_freed=made_room, waiting=waiting, reclaim=True, turns=turns)


def _look_at_all(
    services: Services, turns: Turns, active: Iterable[Marker], waiting: list[Held]
) -> Iterator[FlowResult]:
    until = services.clock.now() + services.timeout * RUNS_SHARE
    orders = ((marker, f"{encoded_time(marker.created_at)} {marker.run_id}") for marker in active)
    markers = {run_item(marker.run_id, order): marker for marker, order in orders}
    listed = ListedJobs(services, len(markers))
    items = turns.order(ItemKind.RUN, markers)
    for item, why in turns.items_in_quarantine(markers):
        often = f"in quarantine after {ATTEMPTS_MAX} failures, and tried again every hour"
        yield _unreconciled_result(markers[item], f"not reconciled: {often}: {why}", "ERROR")
    looked_at = 0
    for done in turns.give_turns(
        items, lambda item: _look_at(services, markers[item], waiting, listed), until=until
    ):
        looked_at += 1
        yield from _results_of(markers[done.item], done)
    left = len(items) - looked_at
    if left:
        message = (
            f"out of time with {left} of {len(items)} active runs left; the next pass continues with them"
        )
        yield FlowResult(message=message, severity="WARNING", event=LogEvent.RECONCILE_BEHIND)


def _results_of(marker: Marker, done: Done[FlowResult | None]) -> Iterator[FlowResult]:
    match done.error:
        case None:
            yield from () if done.result is None else (done.result,)
        case LeaseHeld():
            return
        case error:  # even a bug in this program must not stop the pass for the other runs
            yield _unreconciled_result(marker, f"not reconciled: {error_text(error)}", severity_of(error))


def _unreconciled_result(marker: Marker, message: str, severity: str) -> FlowResult:
    return FlowResult(
        message=message, run_id=marker.run_id, severity=severity, event=LogEvent.RUN_NOT_RECONCILED
    )


def _look_at(
    services: Services, marker: Marker, waiting: list[Held], listed: ListedJobs
) -> FlowResult | None:
    try:
        held = services.ledger.find(marker.run_id)
    except RecordDamaged as damaged:
        return _unreadable(marker, damaged)
    if held is None:
        return _look_at_orphan(services, marker)
    record = held.record
    if record.ended:
        return _look_at_ended(services, held, listed)
    if record.state is RunState.WAITING:
        return _look_at_waiting(services, held, waiting)
    if record.state is RunState.RESERVED:
        add_row(services, held)
        return resume(services, held)
    check_at = record.submission.second_job_check_at
    if check_at is not None and check_at <= services.clock.now():
        held = finish_second_look(services, held)
    return _ask_job(services, held, listed)


def _look_at_waiting(services: Services, held: Held, waiting: list[Held]) -> FlowResult | None:
    record, now = held.record, services.clock.now()
    if record.admission.slots and live_lease(record, now) is None:
        # An attempt died while it submitted: its slot is the run's alone, and runs ahead of it may wait for it.
        return take_over(services, held, None)
    if not is_resting(record, now):
        waiting.append(held)  # the queue pass handles it
    return None


def _unreadable(marker: Marker, damaged: RecordDamaged) -> FlowResult:
    if isinstance(damaged, RecordUnsupported):  # as expected while another release is being deployed
        return FlowResult(message=str(damaged), run_id=marker.run_id, severity="NOTICE")
    return _unreconciled_result(marker, str(damaged), "ERROR")


def _look_at_orphan(services: Services, marker: Marker) -> FlowResult | None:
    if services.clock.now() - marker.created_at < ORPHAN_AGE:
        return None
    services.ledger.unmark(marker.run_id)
    return FlowResult(message="a marker without a record was removed", run_id=marker.run_id)


def _look_at_ended(services: Services, held: Held, listed: ListedJobs) -> FlowResult | None:
    """Steps after the end are left; or the run ended without a job, and one may have been submitted late."""
    record = held.record
    check_at = record.submission.second_job_check_at
    if check_at is not None and check_at <= services.clock.now():
        held = finish_second_look(services, held)
    elif check_at is not None and all_over(record):
        return None
    finished = finish_run(services, held, STEPS, find_job=listed.find)
    is_same = finished.held.version == held.version
    if not all_over(finished.held.record) and (is_same or not finished.ran):
        return None  # a step waits, or one that failed is repeated later
    had_room = record.job is not None
    result = FlowResult(message=f"finished: {record.state}", run_id=record.run_id, made_room=had_room)
    return with_warnings(result, finished.problems)


def _ask_job(services: Services, held: Held, listed: ListedJobs) -> FlowResult:
    record, deadline = held.record, start_deadline(held.record)
    job_name = record.job.name if record.job else ""
    # The list may be minutes old, and a job that has just started must not be given up.
    is_overdue = deadline is not None and deadline <= services.clock.now()
    try:
        job = services.jobs.read(job_name) if is_overdue or not record.job else listed.find(record.job)
    except JobNotFound:
        now = services.clock.now()
        if now - record.updated_at < VANISHED_AGE:
            return FlowResult(message=f"{job_name} is not visible yet", run_id=record.run_id)
        if record.job is not None and is_given_up(record, job_name) and record.state is RunState.SUBMITTED:
            return try_elsewhere(services, held, record.job)
        failure = Failure(message=f"{job_name} no longer exists; it was deleted")
        ended = job_vanished(record, failure, report=REPORT, now=now, attempt=services.attempt)
        finished = finish_run(services, services.ledger.replace(held, ended), STEPS, record)
        result = FlowResult(message=failure.message, run_id=record.run_id, severity="ERROR", made_room=True)
        return with_warnings(result, finished.problems)
    if listed.has_second(record):
        held = look_for_second_job(services, held)
    result = complete_run(services, held, job, REPORT, shows_progress=True)
    if record.cancel_requested_at is not None and job.state not in OVER:
        services.jobs.cancel(job_name)  # a request to cancel guarantees nothing, and may never have been sent
    return result
