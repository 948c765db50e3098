"""Named steps follow the end of a run, each safe to repeat, and each recorded when it is done.

    record    the run has ended; its marker says that steps may be left
    steps     in the table's order; a failed step does not stop the others
    record    names the steps that are done, and the attempts of those that failed: one write for all of a pass
    marker    removed when no step is left and no check for a second job is due

After a crash between any two of these the marker still exists, and the reconciler runs the steps that are not recorded.
A step that fails again and again is given up in the end, and its problem is on record: `core/completion/steps.py`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from trainmaster.orchestrator.core.completion.steps import (
    CHAMPION,
    END_STEPS,
    REASON,
    UTILIZATION,
    is_due,
    is_over,
    with_outcomes,
)
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.notices.notice import cap_reached
from trainmaster.orchestrator.core.runs.end import ChampionVerdict, Completion, Registration
from trainmaster.orchestrator.core.runs.job import Job, RecordedJob
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.runs.utilization import Utilization
from trainmaster.orchestrator.flows.lifecycle import status
from trainmaster.orchestrator.flows.lifecycle.slots import give_back, leave_queue, settle_cost
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.stores.ledger import Held


@dataclass(kw_only=True)
class End:
    """What a step receives. `before` is the record before the end, if this process wrote the end.

    A step that changes the record puts the new one into `held`, for the steps after it. `waiting` names the earlier
    steps that still wait for something, `failed` those that failed, also before this pass. `verdict` is the champion step's, recorded with
    each pass; `registration` and `utilization` those steps'. `find_job` reads a job that follows the run, or raises
    JobNotFound.
    """

    services: Services
    held: Held
    before: RunRecord | None
    waiting: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    verdict: ChampionVerdict | None = None
    registration: Registration | None = None
    utilization: Utilization | None = None
    find_job: Callable[[RecordedJob], Job]

    @property
    def record(self) -> RunRecord:
        return self.held.record

    def noted_in(self, record: RunRecord) -> RunRecord:
        """The record with what the steps of this pass have found."""
        before = record.completion or Completion()
        registration = self.registration or before.registration
        noted = replace(before, champion=self.verdict or before.champion, registration=registration)
        return replace(record, completion=noted, utilization=self.utilization or record.utilization)


Step = Callable[[End], str | None]
"""Returns what a slow step still waits for; the reconciler calls it again. None: the step is done."""


def _update_index(end: End) -> None:
    # Even if the status shows this version: that step runs after this one has failed, too.
    status.write_row(end.services, end.held)


def _update_status(end: End) -> None:
    status.write_status(end.services, end.held, is_explained=REASON not in end.waiting)


def _publish_notices(end: End) -> str | None:
    if REASON in end.waiting:
        return "the notice includes the reason of the failure"
    record = end.noted_in(end.record)
    if CHAMPION in end.waiting and not (record.completion and record.completion.champion):
        return "the notice includes the comparison with the champion"
    status.publish_states(end.services, end.before or replace(record, history=()), record)
    return None


def _publish_cap_notice(end: End) -> None:
    """Publish that a cap refused the run: once for each window, however many runs it refused.

    At least once: two runs at the same time may both publish it, with the same id.
    """
    services, record = end.services, end.record
    window = record.rejection.cap if record.rejection else None
    if window is None or services.starts.was_notified(window):
        return
    notice = cap_reached(record, window)
    services.notices.publish(notice)
    services.starts.keep_notified(window, {"schema": "cap_reached.v1", **notice.data})


def _leave_queue(end: End) -> None:
    if end.before is None or end.before.state is RunState.WAITING:
        leave_queue(end.services, end.record)


def _free_slots(end: End) -> None:
    give_back(end.services, end.record.admission.slots)
    settle_cost(end.services, end.record)


def _do_nothing(_: End) -> None:
    """A run without a job has no log, no model, no result and no machines."""


STEPS_WITHOUT_JOB: Mapping[str, Step] = {
    **dict.fromkeys(END_STEPS, _do_nothing),
    "index": _update_index,
    "status": _update_status,
    "notices": _publish_notices,
    "cap_notice": _publish_cap_notice,
    "queue": _leave_queue,
    "slots": _free_slots,
}
"""For a run that never had a job; `completion/complete.py` has the table of one that had.

The reason of a failure is read before it is reported. Champions are compared before the notices: a rule that waits for
the end of a run sees the champion after it."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The record with the steps that are done. `problems` has the reason for each other one that was run.

    `ran`: whether any step was due, but for one that only waits for samples.
    """

    held: Held
    problems: tuple[str, ...] = ()
    ran: bool = True


def finish_run(
    services: Services,
    held: Held,
    steps: Mapping[str, Step],
    before: RunRecord | None = None,
    find_job: Callable[[RecordedJob], Job] | None = None,
) -> Finished:
    """Run the steps that are due, record their outcomes, and remove the marker after the last one.

    The notices published are those of the states that `before` does not have; without it, those of all states. Without
    `find_job`, a job that follows the run is read.

    Raises:
        RecordMoved: the record kept changing; the reconciler runs the steps again.
        Exception: a bug in a step, raised after the other steps have run.
    """
    read_job = find_job or (lambda job: services.jobs.read(job.name))
    now = services.clock.now()
    due = {name: step for name, step in steps.items() if is_due(held.record, name, now)}
    later = {name for name in steps.keys() - due.keys() if not is_over(held.record, name)}
    end = End(services=services, held=held, before=before, failed=later, find_job=read_job)
    outcomes: dict[str, str | Exception | None] = {}
    for name, step in due.items():
        try:
            outcomes[name] = step(end)
        except Exception as error:  # it must not stop the other steps
            outcomes[name] = error
            end.failed.add(name)
        if isinstance(outcomes[name], str):
            end.waiting.add(name)
    held = _record_outcomes(end, outcomes)
    if isinstance(outcomes.get(UTILIZATION), str):  # its samples come minutes later, which is no news
        del outcomes[UTILIZATION]
    left = {name: outcome for name, outcome in outcomes.items() if outcome is not None}
    problems = tuple(f"step {name!r} has not finished: {outcome}" for name, outcome in left.items())
    is_finished = all(is_over(held.record, name) for name in steps)
    for left_job in held.record.follow_up_jobs if is_finished else ():  # nothing reads their result
        with suppress(TrainmasterError):
            services.jobs.cancel(left_job.name)
    if is_finished and held.record.submission.second_job_check_at is None:
        services.ledger.unmark(held.record.run_id)
    for outcome in left.values():
        if isinstance(outcome, Exception) and not isinstance(outcome, TrainmasterError):
            raise outcome
    return Finished(held=held, problems=problems, ran=bool(outcomes))


def refresh_status(services: Services, held: Held, message: str) -> FlowResult:
    """Refresh the status when an event of the run is redelivered; remaining steps are left to the reconciler."""
    record = held.record
    if "status" not in steps_done(record):
        status.show_again(services, held)
    return FlowResult(message=f"{message}: {record.state}", run_id=record.run_id)


def update_completion(services: Services, held: Held, change: Callable[[Completion], Completion]) -> Held:
    """Record what is known about the end after `change`, applied again to a newer record; unchanged, nothing is written."""

    def change_known(record: RunRecord) -> RunRecord | None:
        before = record.completion or Completion()
        after = change(before)
        if after == before:
            return None
        now, attempt = services.clock.now(), services.attempt
        return replace(record, completion=after, updated_at=now, attempt=attempt)

    return services.ledger.update(held, change_known)


def steps_done(record: RunRecord) -> tuple[str, ...]:
    return record.completion.steps_done if record.completion is not None else ()


def _record_outcomes(end: End, outcomes: Mapping[str, str | Exception | None]) -> Held:
    services, now = end.services, end.services.clock.now()
    done = tuple(name for name, outcome in outcomes.items() if outcome is None)
    failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Exception)}

    def with_pass_recorded(record: RunRecord) -> RunRecord | None:
        known = with_outcomes(end.noted_in(record), done, failed, now)
        if is_over(known, CHAMPION) and known.completion is not None:
            known = replace(known, completion=replace(known.completion, long_copy=None))
        if known.completion == (record.completion or Completion()):
            return None
        return replace(known, updated_at=now, attempt=services.attempt)

    return services.ledger.update(end.held, with_pass_recorded)
