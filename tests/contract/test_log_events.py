"""Log lines that metrics count have an event name from the table, and the flows write every name in it."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from tests.contract.boundaries import At
from tests.contract.candidates import drop, stock_out
from tests.contract.hostile import HostileWorld, state_of
from tests.contract.rooms import TWO_REGIONS, Room, launched, limited
from tests.contract.test_notify import MAIL, NoticeWorld
from tests.contract.world import LEDGER, REGION, ROOT, World
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.notices.notice import receiver_test
from trainmaster.orchestrator.core.policy.admission import Limit
from trainmaster.orchestrator.core.runs.job import Failure, JobState
from trainmaster.orchestrator.flows.services import FlowResult
from trainmaster.orchestrator.flows.turns import ATTEMPTS_MAX
from trainmaster.orchestrator.log_events import LogEvent


def job_reported_by_its_log(state: JobState) -> Sequence[FlowResult]:
    world = World()
    record = world.record(launched(world))
    error = Failure(code=3, message="exit status 1") if state is not JobState.SUCCEEDED else None
    return [world.complete(world.hint(world.jobs.become(present(record.job).name, state, error=error)))]


def job_found_by_the_reconciler() -> Sequence[FlowResult]:
    world = World()
    world.train(world.record(launched(world)))
    return world.reconcile()


def submission_without_room() -> Sequence[FlowResult]:
    world = World()
    Room(world, 0)
    return [world.launch(world.drop())]


def refused_deployment() -> Sequence[FlowResult]:
    world = World()
    Room(world).denied = {REGION}
    return [world.launch(world.drop())]


def limit_reached() -> Sequence[FlowResult]:
    world = limited(Limit(jobs=1))
    launched(world)
    return [world.launch(world.drop())]


def job_without_capacity() -> Sequence[FlowResult]:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    world.launch(incoming)
    return [world.complete(world.hint(stock_out(world, world.record(incoming.run_id))))]


def job_that_stays_queued() -> Sequence[FlowResult]:
    """At most one line an hour, from one hour on."""
    world = World()
    launched(world)
    looks = [world.reconcile_after(timedelta(minutes=minutes)) for minutes in (59, 1, 1, 58)]
    return [result for look in looks for result in look]


def damaged_record() -> Sequence[FlowResult]:
    world = World()
    world.objects.write(LEDGER, f"runs/{launched(world)}.json", b"[", if_generation=None)
    return world.reconcile()


def jobs_that_cannot_be_read(error: Exception) -> Sequence[FlowResult]:
    world = World()
    launched(world)

    def fail() -> None:
        raise error

    return world.reconcile(At("list jobs", before=fail))


def reconcile_without_time_for_all() -> Sequence[FlowResult]:
    world = World()
    for _ in range(6):
        launched(world)
    return world.reconcile(At("read ledger", before=lambda: world.clock.advance(timedelta(seconds=15))))


def rules_without_time_for_all() -> Sequence[FlowResult]:
    world = HostileWorld()
    rules = [f"r{number}" for number in range(6)]
    world.accept_copies(*rules)
    world.hostility.computes |= {state_of(rule_id) for rule_id in rules}
    return world.minute()


def rule_that_keeps_failing() -> Sequence[FlowResult]:
    world = HostileWorld()
    world.accept_copies("bad")
    world.hostility.raises.add(state_of("bad"))
    return [line for _ in range(ATTEMPTS_MAX + 1) for line in world.minute()]


def notice_by_email() -> Sequence[FlowResult]:
    world = NoticeWorld(MAIL)
    return world.deliver(receiver_test("mail", "1", world.clock.now()))


SCENES: Sequence[tuple[LogEvent, Callable[[], Sequence[FlowResult]]]] = [
    *((LogEvent.JOB_ENDED, lambda state=state: job_reported_by_its_log(state)) for state in
      (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED)),
    (LogEvent.JOB_ENDED, job_found_by_the_reconciler),
    (LogEvent.RUN_WAITS, submission_without_room),
    (LogEvent.RUN_WAITS, limit_reached),
    (LogEvent.DEPLOYMENT_REFUSED, refused_deployment),
    (LogEvent.RUN_WAITS, job_without_capacity),
    (LogEvent.JOB_NOT_STARTED, job_that_stays_queued),
    (LogEvent.RUN_NOT_RECONCILED, damaged_record),
    (LogEvent.RUN_NOT_RECONCILED, lambda: jobs_that_cannot_be_read(ServiceFailed("Vertex AI", "read", "503"))),
    (LogEvent.RUN_NOT_RECONCILED, lambda: jobs_that_cannot_be_read(ZeroDivisionError("a mistake"))),
    (LogEvent.RECONCILE_BEHIND, reconcile_without_time_for_all),
    (LogEvent.RECONCILE_BEHIND, rules_without_time_for_all),
    (LogEvent.QUARANTINED, rule_that_keeps_failing),
    (LogEvent.NOTICE_EMAIL, notice_by_email),
]  # fmt: skip


@pytest.mark.parametrize(("event", "scene"), SCENES)
def test_flows_name_lines_that_metrics_count(
    event: LogEvent, scene: Callable[[], Sequence[FlowResult]]
) -> None:
    assert [each.event for each in scene() if each.event is not None] == [event]


def test_the_flows_write_every_name() -> None:
    assert {event for event, _ in SCENES} == set(LogEvent)


def test_a_refusal_and_a_running_job_have_no_event_name(world: World) -> None:
    assert world.launch(world.drop()).event is None
    assert {each.event for each in world.reconcile()} == {None}


def test_the_page_of_log_lines_has_every_name() -> None:
    text = (ROOT / "docs/reference/log-lines.md").read_text()
    assert all(f"| `{event}` |" in text for event in LogEvent)
