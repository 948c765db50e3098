"""Caps on started runs, with one notice for a storm; the cost of an ended run is beside its estimate."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.contract.index import index_rows
from tests.contract.rooms import drop, launched, states
from tests.contract.schemas import NOTICE, RECORD
from tests.contract.world import Boundary, World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import PolicyInvalid
from trainmaster.orchestrator.core.notices.notice import cloud_event
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.record import RunRecord
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


REQUEST = b"""
model_name: m
image: us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest
scheduling: {timeout_s: 3600}
cluster:
  chief: {machine: n1-standard-4}
  workers: {machine: n1-standard-8, count: 2}
"""
ESTIMATED = request_rules_with(admission=Admission(estimates=True))


def ended(world: World) -> RunRecord:
    """The record of a run that was launched, and whose job ran for ten minutes."""
    incoming = world.drop_and_launch(REQUEST)
    world.train(world.record(incoming.run_id))
    world.reconcile()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    RECORD.validate(encoded(record))
    return record


def test_the_cost_of_a_run_stands_beside_its_estimate() -> None:
    world = World(ESTIMATED, lambda: PRICES)
    record = ended(world)
    assert present(present(record.request).estimate).per_hour == Decimal("6.0")
    assert record.completion is not None
    assert record.completion.cost is not None
    assert record.completion.cost.total == Decimal("1.0")
    assert record.completion.cost.roles == {"chief": Decimal("0.3"), "workers": Decimal("0.7")}
    (row,) = index_rows(world.objects)
    assert (row.per_hour, row.at_most, row.cost, row.currency) == (Decimal(6), Decimal(6), Decimal(1), "USD")


def test_a_dozen_short_tries_leave_room_for_more_and_cost_a_write_each() -> None:
    world = World(request_rules_with(admission=Admission(caps=Caps(cost_per_day=Decimal(7)))), lambda: PRICES)
    for number in range(12):
        incoming = world.drop_and_launch(REQUEST, f"requests/{number}.yaml")
        job = present(world.record(incoming.run_id).job).name
        if number % 2:
            world.jobs.become(job, JobState.CANCELLED, ran=False)
        else:
            world.jobs.become(job, JobState.RUNNING)
            world.clock.advance(timedelta(seconds=1))
            world.jobs.become(job, JobState.SUCCEEDED)
        boundary = Boundary()
        world.reconcile(boundary)
        assert boundary.calls.count("write started") == 1
    marks = world.services().starts.of_day(world.clock.now().date())
    assert [mark.cost for mark in marks] == [Decimal(6)] * 12
    assert sum(present(mark.end).cost for mark in marks) < Decimal("0.1")


def test_a_price_table_that_became_unusable_keeps_no_run_from_ending_and_its_maximum_counts() -> None:
    world = World(request_rules_with(admission=Admission(caps=Caps(cost_per_day=Decimal(7)))), lambda: PRICES)
    incoming = world.drop_and_launch(REQUEST)

    def broken() -> Prices:
        raise PolicyInvalid(str(Path("prices.yaml")), ("it is no table",))

    world.prices = broken
    world.train(world.record(incoming.run_id))
    world.reconcile()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert record.problems[-1].startswith("the cost of the run is unknown: ")
    assert world.active() == []
    world.prices = lambda: PRICES
    other = world.drop_and_launch(REQUEST, "requests/other.yaml")
    assert states(world, other.run_id) == ["rejected"]


def test_a_run_without_an_estimate_has_no_cost_and_reads_no_prices() -> None:
    def never() -> Prices:
        raise AssertionError("the price table was read")

    completion = present(ended(World(prices=never)).completion)
    assert completion.cost is None
