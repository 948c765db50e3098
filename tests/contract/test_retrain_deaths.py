"""A process may die at any call that leaves it, or the call may fail, done or not done.

Events that were not acknowledged come again, ticks do not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.contract.life.stage import Stage
from tests.contract.life.steps import TICK, Step, data_came, fired, rule_dropped, waited
from tests.contract.retraining import IMAGE, MANUAL, SMALL, rule
from tests.contract.world import LEASE, Boundary, Killed
from trainmaster.orchestrator.core.errors import ServiceFailed, TrainmasterError
from trainmaster.orchestrator.core.runs.job import JobState


def pushed(digit: str) -> Step:
    def act(world: Stage, boundary: Boundary) -> object:
        return world.signal(world.pushed(digit, message_id=digit), boundary)

    return Step(act=act)


def service_failed(where: str) -> ServiceFailed:
    return ServiceFailed("The service", "answer", where)


@dataclass(frozen=True, kw_only=True)
class Accident:
    """What happens at the nth call of the undisturbed way."""

    number: int
    after: bool
    death: Callable[[str], BaseException]

    @property
    def boundary(self) -> Boundary:
        return Boundary(die_at=self.number, die_after_the_call=self.after, death=self.death)

    def __str__(self) -> str:
        return f"{self.death.__name__} {'after' if self.after else 'before'} call {self.number}"


def accidents(steps: Sequence[Step]) -> list[Accident]:
    """Every call of the undisturbed way: the process dies, or the service fails, before and after it."""
    boundary, world = Boundary(), Stage()
    for step in steps:
        step.act(world, boundary)
    return [
        Accident(number=number, after=after, death=death)
        for number in range(len(boundary.calls))
        for after in (False, True)
        for death in (Killed, service_failed)
    ]


def world_after(steps: Sequence[Step], accident: Accident) -> Stage:
    """The world some minutes later: the accident happened once, and the schedule went on."""
    world, boundary = Stage(), accident.boundary
    for step in steps:
        try:
            step.act(world, boundary)
        except (Killed, TrainmasterError):
            if step.again:
                step.act(world, Boundary())
    assert len(boundary.calls) > accident.number
    for seconds in (61, LEASE.total_seconds(), 61):
        world.wait(seconds)
        world.sweep()
        world.tick()
    return world


BURST = (
    rule_dropped(rule()),
    *(data_came(number) for number in range(5)),
    TICK,
    waited(61),
    TICK,
    waited(60),
    TICK,
)


@pytest.mark.parametrize("accident", accidents(BURST), ids=str)
def test_a_burst_starts_one_run_and_counts_every_arrival_once(accident: Accident) -> None:
    world = world_after(BURST, accident)
    (record,) = world.records()
    assert record.state == "submitted"
    assert record.request is not None
    assert record.request.document["args"] == ["--seen=5"]
    assert len(world.jobs.all()) == 1
    assert world.batches() == []
    told = world.rule_status()
    assert (told["state"], told["firings"]) == ("accepted", 1)
    assert told["last_firing"]["run_id"] == record.run_id


REPLACED = (rule_dropped(rule(MANUAL, while_running="replace")), fired("1"), waited(1), fired("2"))


@pytest.mark.parametrize("accident", accidents(REPLACED), ids=str)
def test_an_order_that_replaces_a_run_leaves_one_going(accident: Accident) -> None:
    world = world_after(REPLACED, accident)
    assert [record.source.firing for record in world.records()] == [1, 2]
    jobs = {job.labels["trainmaster_run_id"]: job.state for job in world.jobs.all()}
    first, second = world.records()
    assert jobs == {first.run_id: JobState.CANCELLED, second.run_id: JobState.PENDING}


PUSHED = (
    rule_dropped(
        rule(
            {"new_image": {"repository": IMAGE, "tag": "latest"}}, request={**SMALL, "image": "${image.uri}"}
        )
    ),
    pushed("a"),
    pushed("a"),
    TICK,
)


@pytest.mark.parametrize("accident", accidents(PUSHED), ids=str)
def test_a_push_starts_one_run(accident: Accident) -> None:
    world = world_after(PUSHED, accident)
    (record,) = world.records()
    assert record.request is not None
    assert record.request.document["image"] == f"{IMAGE}@sha256:{'a' * 64}"
    assert len(world.jobs.all()) == 1


RETIRED = (
    rule_dropped(rule(MANUAL)),
    fired("1"),
    Step(act=lambda world, _: world.remove_rule(), again=False),
    TICK,
)


@pytest.mark.parametrize("accident", accidents(RETIRED), ids=str)
def test_what_a_rule_had_decided_is_done_though_its_file_goes(accident: Accident) -> None:
    world = world_after(RETIRED, accident)
    assert [record.state for record in world.records()] == ["submitted"]
    assert world.rule_status()["state"] == "retired"


def ended(number: int) -> Step:
    """The job of the nth run ends; its log entry and, once that is settled, its notice are delivered."""

    def act(world: Stage, boundary: Boundary) -> None:
        world.finish(number, boundary)

    return Step(act=act)


QUEUED = (rule_dropped(rule(MANUAL, while_running="queue_one")), fired("1"), waited(1), fired("2"), ended(0))


@pytest.mark.parametrize("accident", accidents(QUEUED), ids=str)
def test_a_queued_firing_has_its_one_run(accident: Accident) -> None:
    world = world_after(QUEUED, accident)
    assert [record.source.firing for record in world.records()] == [1, 2]
    assert len(world.jobs.all()) == 2
