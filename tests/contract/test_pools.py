"""Runs on the policy's persistent resources: preferred while they have room, and deleted when no run uses them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.boundaries import At, dies_before
from tests.contract.candidates import kept
from tests.contract.retraining import SMALL
from tests.contract.rooms import Answering, full
from tests.contract.world import LEDGER, PROJECT, REGION, Boundary, Killed, World, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.policy.pools import PoolState, RunPool
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import FlowResult

MACHINE = {"machine": "n1-standard-4"}
IDLE = timedelta(seconds=3600)
POOL = RunPool(
    id="short", region=REGION, machine="n1-standard-4", count=2, short_s=600, idle_s=int(IDLE.total_seconds())
)
NAME = f"projects/{PROJECT}/locations/{REGION}/persistentResources/short"


def a_world(**changes: Any) -> World:
    world = World(request_rules_with(pools=(replace(POOL, **changes),)))
    world.clock.advance(timedelta(hours=1))
    make_pool(world)
    return world


def make_pool(world: World) -> None:
    now = world.clock.now()
    world.jobs.pools[NAME] = PoolState(name=NAME, is_running=True, machines=2, used=0, created_at=now)


def show(world: World, **changes: Any) -> None:
    world.jobs.pools[NAME] = replace(world.jobs.pools[NAME], **changes)


def launch(world: World, name: str = "a", **changes: Any) -> tuple[str, Mapping[str, Any]]:
    """The run's id, and the spec of the job that was submitted last."""
    document = {**SMALL, "scheduling": {"timeout_s": 600}, **changes}
    incoming = world.drop(json.dumps(document).encode(), f"requests/{name}.json")
    sent = Answering(world)
    world.launch(incoming, jobs=sent)
    kept(world, incoming.run_id)
    body: Mapping[str, Any] = sent.sent[-1].body
    return incoming.run_id, body["jobSpec"]


def test_a_short_run_that_fits_prefers_a_pool_with_room() -> None:
    world = a_world()
    run_id, spec = launch(world)
    assert spec["persistentResourceId"] == "short"
    assert present(world.record(run_id).request).document.get("persistent_resource") is None


@pytest.mark.parametrize(
    "state",
    [{"used": 2}, {"is_running": False}, {"name": NAME.replace("short", "other")}],
    ids=["busy", "being changed", "missing"],
)
def test_without_room_it_gets_fresh_machines_at_once(state: dict[str, Any]) -> None:
    world = a_world()
    show(world, **state)
    run_id, spec = launch(world)
    assert "persistentResourceId" not in spec
    (tried,) = world.record(run_id).submission.tries
    assert (tried.candidate, tried.outcome) == (0, "0 free machines on short")


def test_a_service_that_shows_no_pools_costs_no_run() -> None:
    world = a_world()

    def fail(_region: str) -> None:
        raise ServiceFailed("Vertex AI", "list the persistent resources", "403")

    world.jobs.pool_states = fail  # type: ignore[assignment,method-assign]
    assert "persistentResourceId" not in launch(world)[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"scheduling": {"timeout_s": 601}},
        {"scheduling": {"timeout_s": 600, "spot": True}},
        {"cluster": {"chief": {"machine": "n1-standard-8"}}},
        {"cluster": {"chief": {**MACHINE, "disk": {"size_gb": 200}}}},
        {"cluster": {"chief": MACHINE, "workers": {**MACHINE, "count": 2}}},
    ],
    ids=["long", "spot", "another machine", "its own disk", "more machines"],
)
def test_what_does_not_fit_never_asks(changes: dict[str, Any]) -> None:
    world = a_world()
    run_id, spec = launch(world, **changes)
    assert "persistentResourceId" not in spec
    assert (world.record(run_id).submission.tries, present(world.record(run_id).request).pools) == ((), None)


def test_a_run_that_waits_stays_in_the_line_of_its_machines_and_takes_a_pool_that_is_free_first() -> None:
    world = a_world()
    show(world, used=2)
    first = world.drop(json.dumps({**SMALL, "scheduling": {"timeout_s": 600}}).encode(), "requests/a.json")
    world.launch(first, jobs=Answering(world, full()))
    world.clock.advance(timedelta(seconds=1))
    later = world.drop(json.dumps(SMALL).encode(), "requests/b.json")
    world.launch(later)
    assert [world.record(one.run_id).state for one in (first, later)] == [RunState.WAITING] * 2
    show(world, used=0)
    sent = Answering(world)
    world.reconcile_after(timedelta(minutes=1), jobs=sent)
    bodies: dict[str, Any] = {one.run_id: one.body for one in sent.sent}
    assert bodies[first.run_id]["jobSpec"]["persistentResourceId"] == "short"
    assert "persistentResourceId" not in bodies[later.run_id]["jobSpec"]


def tick(world: World, after: timedelta = timedelta(), boundary: Boundary | None = None) -> list[FlowResult]:
    world.clock.advance(after)
    return list(take_tick(world.services(boundary)))


def test_an_idle_pool_is_deleted_after_its_time_and_not_before() -> None:
    world = a_world()
    assert tick(world) == []  # sees it for the first time
    assert tick(world, IDLE - timedelta(minutes=1)) == []
    (deleted,) = tick(world, timedelta(minutes=1))
    assert deleted.message == f"{NAME} is deleted: no run has used it for 3600 s"
    assert world.jobs.pools == {}
    assert tick(world, IDLE) == []


@pytest.mark.parametrize("use", ["a run", "a job that the service shows"])
def test_a_use_begins_the_time_anew(use: str) -> None:
    world = a_world()
    tick(world)
    world.clock.advance(IDLE / 2)
    if use == "a run":
        run_id, _ = launch(world)
        world.complete(world.hint(world.train(world.record(run_id))))
    else:
        show(world, used=1)
        tick(world)
        show(world, used=0)
    tick(world, IDLE * 3 / 4)
    assert world.jobs.pools
    tick(world, IDLE / 4)
    assert not world.jobs.pools


def test_it_stays_while_a_run_is_submitted_to_it_that_the_service_does_not_show_yet() -> None:
    world = a_world()
    run_id, _ = launch(world)
    tick(world, IDLE * 2)
    assert world.jobs.pools
    world.jobs.become(present(world.record(run_id).job).name, JobState.RUNNING)
    world.complete(world.hint(world.train(world.record(run_id))))
    tick(world, IDLE)
    assert not world.jobs.pools


def test_a_pool_of_a_killed_deletion_takes_no_run_and_is_deleted_by_the_next_tick() -> None:
    world = a_world()
    tick(world)
    world.clock.advance(IDLE)
    with pytest.raises(Killed):
        tick(world, boundary=dies_before("delete pool"))
    assert "persistentResourceId" not in launch(world)[1]
    tick(world)
    assert not world.jobs.pools


def test_a_run_that_is_submitted_between_look_and_deletion_keeps_its_pool() -> None:
    world = a_world()
    tick(world)
    world.clock.advance(IDLE)
    runs: list[Mapping[str, Any]] = []
    tick(world, boundary=At("read pools", after=lambda: runs.append(launch(world)[1])))
    assert (runs[0]["persistentResourceId"], list(world.jobs.pools)) == ("short", [NAME])


def test_a_pool_made_anew_under_the_same_name_takes_runs_again() -> None:
    world = a_world()
    tick(world)
    tick(world, IDLE)
    world.clock.advance(timedelta(minutes=5))
    make_pool(world)
    assert launch(world)[1]["persistentResourceId"] == "short"


def test_without_idle_s_there_is_no_list_and_no_mark() -> None:
    world = a_world(idle_s=None)
    world.jobs.pool_states = lambda _: pytest.fail("listed")  # type: ignore[method-assign,assignment]
    assert tick(world, IDLE) == []
    assert list(world.objects.listing(LEDGER, "pools/")) == []
