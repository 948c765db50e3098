"""Runs on the policy's persistent resources: preferred while they have room."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.candidates import kept
from tests.contract.retraining import SMALL
from tests.contract.rooms import Answering
from tests.contract.world import (
    PROJECT,
    REGION,
    World,
    request_rules_with,
)
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.policy.pools import PoolState, RunPool

IDLE = timedelta(seconds=3600)
POOL = RunPool(
    id="short", region=REGION, machine="n1-standard-4", count=2, short_s=600, idle_s=int(IDLE.total_seconds())
)
NAME = f"projects/{PROJECT}/locations/{REGION}/persistentResources/short"


def a_world(**changes: Any) -> World:
    world = World(request_rules_with(pools=(replace(POOL, **changes),)))
    world.clock.advance(timedelta(hours=1))
    world.jobs.pools[NAME] = PoolState(
        name=NAME, is_running=True, machines=2, used=0, created_at=world.clock.now()
    )
    return world


def show(world: World, **changes: Any) -> None:
    world.jobs.pools[NAME] = replace(world.jobs.pools[NAME], **changes)


def launch(world: World, name: str = "a", **changes: Any) -> tuple[str, Mapping[str, Any]]:
    """The run's id, and the spec of the job that was submitted last."""
    document = {**SMALL, "scheduling": {"timeout_s": 600}, **changes}
    incoming = world.drop(json.dumps(document).encode(), f"requests/{name}.json")
    sent = Answering(world)
    world.launch(incoming, jobs=sent)
    kept(world, incoming.run_id)
    return incoming.run_id, sent.sent[-1].body["jobSpec"]


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
        {"cluster": {"chief": {"machine": "n1-standard-4", "disk": {"size_gb": 200}}}},
        {
            "cluster": {
                "chief": {"machine": "n1-standard-4"},
                "workers": {"machine": "n1-standard-4", "count": 2},
            }
        },
    ],
    ids=["long", "spot", "another machine", "its own disk", "more machines"],
)
def test_what_does_not_fit_never_asks(changes: dict[str, Any]) -> None:
    world = a_world()
    run_id, spec = launch(world, **changes)
    assert "persistentResourceId" not in spec
    assert (world.record(run_id).submission.tries, present(world.record(run_id).request).pools) == ((), None)
