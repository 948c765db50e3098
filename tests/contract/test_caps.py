"""Caps on started runs: in a storm each run beyond the cap is refused, with one notice for all."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from tests.contract.rooms import drop, launched, states
from tests.contract.schemas import NOTICE
from tests.contract.world import LEDGER, Boundary, World, request_rules_with
from trainmaster.orchestrator.adapters.pubsub import cloud_event
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.runs.states import RunState


def capped(**caps: Any) -> World:
    return World(request_rules_with(admission=Admission(caps=Caps(**caps))))


def cap_notices(world: World) -> Iterator[dict[str, Any]]:
    for notice in world.notices.published:
        if notice.type == "trainmaster.cap.reached.v1":
            document = cloud_event(notice, "//trainmaster/projects/p/locations/l")
            NOTICE.validate(document)
            yield document


def test_a_storm_is_one_refusal_a_run_and_one_notice_a_window() -> None:
    world = capped(runs_per_hour=3)
    runs = [launched(world) for _ in range(10)]
    assert states(world, *runs) == ["submitted"] * 3 + ["rejected"] * 7
    world.reconcile()
    (notice,) = cap_notices(world)
    assert notice["id"] == "caps/runs_per_hour/2026-03-01T12"
    refused = world.record(runs[5])
    assert len(refused.problems) == 1
    assert world.document(f"rejected/{refused.run_id}.json")["faults"][0]["problem"].startswith(
        "3 runs were started"
    )
    world.clock.advance(timedelta(hours=1))
    assert states(world, launched(world)) == ["submitted"]


def test_a_full_cap_costs_a_listing_and_no_mark() -> None:
    world = capped(runs_per_hour=1)
    first, second = Boundary(), Boundary()
    world.launch(drop(world), first)
    world.launch(drop(world), second)
    assert first.calls.count("write started") == 1
    assert "write started" not in second.calls
    assert second.calls.count("list ledger") == 1


def test_of_many_at_once_as_many_are_started_as_the_cap_allows() -> None:
    world = capped(runs_per_hour=5)
    arrivals = [drop(world) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(world.launch, arrivals))
    found = [world.record(each.run_id).state for each in arrivals]
    assert found.count(RunState.SUBMITTED) == 5
    assert found.count(RunState.REJECTED) == 11


def test_marks_of_starts_are_removed_on_the_second_day() -> None:
    world = capped(runs_per_hour=5)
    launched(world)
    world.reconcile_after(timedelta(days=1))
    assert [each.name for each in world.objects.listing(LEDGER, "started/")] != []
    world.reconcile_after(timedelta(days=1))
    assert [each.name for each in world.objects.listing(LEDGER, "started/")] == []
