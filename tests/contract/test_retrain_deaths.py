"""A process may die at any call that leaves it, or the call may fail, done or not done.

Events that were not acknowledged come again, ticks do not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from orchestrator.core.errors import ServiceFailed, TrainmasterError
from orchestrator.core.retrain.arrival import ArrivedObject
from orchestrator.core.run import JobState
from tests.contract.retraining import DATA, MANUAL, SMALL, RuleWorld, rule
from tests.contract.world import LEASE, START, Boundary, Killed

Act = Callable[[RuleWorld, Boundary], object]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One delivery; `again`: it is delivered again when the process died in it."""

    act: Act
    again: bool = True


def dropped(document: object) -> Step:
    def act(world: RuleWorld, boundary: Boundary) -> object:
        return world.tell_rule(world.put_rule_once(document), boundary)

    return Step(act=act)


def came(number: int) -> Step:
    arrival = ArrivedObject(
        bucket=DATA, name=f"{number}.jpg", generation=number + 1, size_bytes=1, created_at=START
    )
    return Step(act=lambda world, boundary: world.crossing_log(boundary).append(arrival))


def waited(seconds: float) -> Step:
    return Step(act=lambda world, _: world.wait(seconds), again=False)


TICK = Step(act=lambda world, boundary: world.tick(boundary), again=False)


def ordered(key: str) -> Step:
    document = {"fire": {"rule": "cassava"}}
    return Step(act=lambda world, boundary: world.order(document, key, boundary))


def pushed(digit: str) -> Step:
    def act(world: RuleWorld, boundary: Boundary) -> object:
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
    boundary, world = Boundary(), RuleWorld()
    for step in steps:
        step.act(world, boundary)
    return [
        Accident(number=number, after=after, death=death)
        for number in range(len(boundary.calls))
        for after in (False, True)
        for death in (Killed, service_failed)
    ]


def world_after(steps: Sequence[Step], accident: Accident) -> RuleWorld:
    """The world some minutes later: the accident happened once, and the schedule went on."""
    world, boundary = RuleWorld(), accident.boundary
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
    dropped(rule()),
    *(came(number) for number in range(5)),
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
    assert record.request["args"] == ["--seen=5"]
    assert len(world.jobs.all()) == 1
    assert world.batches() == []
    told = world.rule_status()
    assert (told["state"], told["firings"]) == ("accepted", 1)
    assert told["last_firing"]["run_id"] == record.run_id


REPLACED = (dropped(rule(MANUAL, while_running="replace")), ordered("1"), waited(1), ordered("2"))


@pytest.mark.parametrize("accident", accidents(REPLACED), ids=str)
def test_an_order_that_replaces_a_run_leaves_one_going(accident: Accident) -> None:
    world = world_after(REPLACED, accident)
    assert [record.source.firing for record in world.records()] == [1, 2]
    jobs = {job.labels["trainmaster_run_id"]: job.state for job in world.jobs.all()}
    first, second = world.records()
    assert jobs == {first.run_id: JobState.CANCELLED, second.run_id: JobState.PENDING}


IMAGE = "us-docker.pkg.dev/my-project/repo/trainer"
PUSHED = (
    dropped(
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
    assert record.request["image"] == f"{IMAGE}@sha256:{'a' * 64}"
    assert len(world.jobs.all()) == 1


RETIRED = (
    dropped(rule(MANUAL)),
    ordered("1"),
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

    def act(world: RuleWorld, boundary: Boundary) -> None:
        world.finish(number, boundary)

    return Step(act=act)


QUEUED = (dropped(rule(MANUAL, while_running="queue_one")), ordered("1"), waited(1), ordered("2"), ended(0))


@pytest.mark.parametrize("accident", accidents(QUEUED), ids=str)
def test_a_queued_firing_has_its_one_run(accident: Accident) -> None:
    world = world_after(QUEUED, accident)
    assert [record.source.firing for record in world.records()] == [1, 2]
    assert len(world.jobs.all()) == 2
