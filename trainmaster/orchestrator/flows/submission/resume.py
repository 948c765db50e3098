"""A recorded run is resumed: by another delivery of its event, an order, the reconciler, or its turn in the queue.

It proceeds as far as it can, or is ended early: by an order, or because a rule replaces it.

    record    says that the run must end: no job follows, whatever happens to the one it may have
    job       is cancelled, repeatedly by the reconciler; the run ends when the job's state says that it has ended

A run without a job ends at once. While another attempt holds the lease, it is not known whether there is a job.
"""

from dataclasses import replace

from trainmaster.orchestrator.core.admission.cost import with_price
from trainmaster.orchestrator.core.admission.queue import QueuePass
from trainmaster.orchestrator.core.admission.waiting import UNANSWERED_MAX
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.errors import DeploymentRefused, LeaseHeld, TrainmasterError
from trainmaster.orchestrator.core.requests.request import checked_again
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.moves import live_lease, taken_over
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.sender import Sender
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.lifecycle import transitions
from trainmaster.orchestrator.flows.lifecycle.finish import refresh_status
from trainmaster.orchestrator.flows.lifecycle.follow_up import cancel_follow_ups
from trainmaster.orchestrator.flows.lifecycle.status import show_again, with_warnings
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.submit import give_lease_back, submit, wait_for_repair
from trainmaster.orchestrator.stores.ledger import Held


def resume(services: Services, held: Held) -> FlowResult:
    """Move a recorded run forward as far as it can go now.

    Raises:
        LeaseHeld: another attempt holds the lease.
    """
    record = held.record
    if record.state not in (RunState.RESERVED, RunState.WAITING):
        return refresh_status(services, held, "the run already exists")
    _check_lease(services, record)
    if record.state is RunState.WAITING:
        show_again(services, held)
        return FlowResult(message="the run is waiting for capacity", run_id=record.run_id)
    return take_over(services, held, None)


def _check_lease(services: Services, record: RunRecord) -> None:
    """Raise LeaseHeld if another attempt may still submit a job, or may have submitted one that is not visible yet."""
    if lease := live_lease(record, services.clock.now()):
        raise LeaseHeld(record.run_id, lease.expires_at)


def take_over(
    services: Services, held: Held, queue_pass: QueuePass | None, *, reclaim: bool = False
) -> FlowResult:
    """Take over the run, look for a job that it may have, and submit it if it has none. See `submit`.

    Raises:
        RecordMoved: another attempt was faster.
    """
    record = held.record
    over = taken_over(record, attempt=services.attempt, now=services.clock.now(), lease=services.lease)
    held = services.ledger.replace(held, over)
    try:
        job = transitions.job_of(services, held.record)
    except DeploymentRefused as refusal:
        return wait_for_repair(services, held, queue_pass, refusal)
    except TrainmasterError:
        give_lease_back(services, held)
        raise
    is_wanted = job is None and record.cancel_requested_at is None
    blocker = _blocker(services, record) if is_wanted else None
    if is_wanted and blocker is None:
        return with_warnings(submit(services, held, queue_pass, reclaim=reclaim), record.problems)
    if queue_pass is not None:
        queue_pass.mark_gone(record.run_id)
    if job is not None:
        adopted = transitions.record_submission(services, held, job, "found a job of this run and adopted it")
        return with_warnings(adopted, record.problems)
    if blocker is None:
        return transitions.cancel_run(services, held)
    return transitions.fail_run(services, held, *blocker)


def _blocker(services: Services, record: RunRecord) -> tuple[Failure, tuple[str, ...]] | None:
    """Why the run can no longer get a job, and its request's faults under the current policy; None: it still can."""
    submission = record.submission
    if submission.unanswered >= UNANSWERED_MAX:
        last = submission.tries[-1].outcome if submission.tries else "no reason was recorded"
        why = f"Vertex AI gave no answer to {submission.unanswered} submissions in a row; the last: {last}"
        return Failure(message=why), ()
    if record.request is None:
        return None
    rules = services.request_rules().of_team(record.source.team, record.run_id)
    checked = rules if isinstance(rules, Refused) else checked_again(record.request.document, rules)
    if not isinstance(rules, Refused):
        checked = with_price(checked, rules.policy, services.prices)
    if not isinstance(checked, Refused):
        return None
    faults = tuple(str(fault) for fault in checked.faults)
    return Failure(message=f"the request is no longer allowed: {'; '.join(faults)}"), faults


def cancel(services: Services, held: Held, by: Sender | None = None) -> FlowResult:
    """End the run, or cancel its job, or the jobs that follow it. Safe to repeat, also for a run that has ended.

    Raises:
        LeaseHeld: the run is being submitted now.
        RecordMoved: the record has just changed.
        ServiceFailed: the job was not cancelled; the reconciler tries again.
    """
    record, now = held.record, services.clock.now()
    if record.ended:
        cancelled = cancel_follow_ups(services, held, by)
        return cancelled or refresh_status(services, held, "the run had already ended")
    is_new = record.cancel_requested_at is None
    if is_new:
        asked = replace(record, cancel_requested_at=now, cancel_requested_by=by)
        asked = replace(asked, updated_at=now, attempt=services.attempt)
        held = replace(held, record=asked)
    if record.job is not None:
        if is_new:
            services.ledger.replace(held, held.record)
        services.jobs.cancel(record.job.name)
        return FlowResult(message=f"{record.job.name} was asked to cancel", run_id=record.run_id)
    if record.submission.lease is None:
        return transitions.cancel_run(services, held)
    try:
        _check_lease(services, record)
    except LeaseHeld:
        if is_new and record.submission.unanswered > 0:
            # A lease lasts after a submission without a response, and the reconciler may start the next one before us.
            services.ledger.replace(held, held.record)
        raise
    result = take_over(services, held, None)
    held = services.ledger.present(record.run_id)
    return cancel(services, held, by) if held.record.job is not None else result
