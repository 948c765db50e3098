"""The cost of retraining in storage operations, at any rate of events and length of history."""

import json
from collections import Counter

import pytest

from tests.contract.data_stream import MeteredWorld, Simulation
from tests.contract.retraining import DATA, MANUAL, SMALL, RuleWorld, rule
from tests.contract.world import LEDGER, World
from tests.narrowing import present

STREAM = {"new_data": {"objects": f"gs://{DATA}/stream/**", "min_objects": 1000, "quiet_s": 60}}
COUNTING = {**SMALL, "args": ["--seen=${data.count}"]}


@pytest.mark.parametrize("instances", [1, 4])
def test_a_thousand_events_a_second_write_no_name_more_than_once_a_second(instances: int) -> None:
    world = MeteredWorld()
    world.drop_rule(rule(STREAM, request=COUNTING))
    world.wait(1)
    simulation = Simulation(world=world, events_per_s=1000, seconds=30, instances=instances)
    simulation.run()
    (record,) = world.records()
    assert present(record.request).document["args"] == [f"--seen={simulation.events}"]
    assert world.meter.most_writes_in_a_second == 1
    assert all(count == 1 for (name, _), count in world.meter.writes.items() if name.startswith("arrivals/"))
    # 20 groups a second from each instance: each is written, read and deleted once; the rest is the tick's.
    operations = sum(world.meter.operations.values()) / simulation.events
    assert operations <= 0.062 * instances + 0.002
    assert world.batches() == []


def test_an_event_reads_and_lists_nothing() -> None:
    world = MeteredWorld()
    world.drop_rule(rule(STREAM, request=COUNTING))
    before = Counter(world.meter.operations)
    world.arrive(100)
    found = Counter(world.meter.operations) - before
    by_user = {("write", "day-1"): 100, ("read", "day-1"): 100}
    assert found - Counter(by_user) == {("write", "arrivals"): 100}


def past_runs(world: World, count: int, *, first: int = 0) -> None:
    """Records of runs of the rule that ended long ago."""
    (record, *_) = [each.name for each in world.objects.listing(LEDGER, "runs/")]
    ended = {**world.document(record), "state": "succeeded"}
    for number in range(first, first + count):
        run_id = f"cassava-20250101t000000-{number:010d}"
        content = json.dumps({**ended, "run_id": run_id}).encode()
        world.objects.write(LEDGER, f"runs/{run_id}.json", content, if_generation=0)


def cost_of_a_tick(world: MeteredWorld) -> Counter[tuple[str, str]]:
    world.wait(60)
    before = Counter(world.meter.operations)
    world.take_tick()
    return Counter(world.meter.operations) - before


def test_a_tick_costs_the_same_at_ten_and_at_ten_thousand_past_runs() -> None:
    world = MeteredWorld()
    world.drop_rule(rule({"schedule": {"cron": "0 3 * * *"}}, MANUAL, STREAM, request=SMALL))
    world.order({"fire": {"rule": "cassava"}}, "1")
    world.tick()
    past_runs(world, 10)
    few = cost_of_a_tick(world)
    past_runs(world, 9990, first=10)
    assert cost_of_a_tick(world) == few
    assert sum(few.values()) <= 11


def test_a_rule_more_costs_a_tick_one_read() -> None:
    def cost(rules: int) -> Counter[tuple[str, str]]:
        world = MeteredWorld()
        for number in range(rules):
            request = {**SMALL, "model_name": f"model-{number}"}
            world.drop_rule(rule(STREAM, request=request), f"rules/{number}.json")
        world.tick()
        return cost_of_a_tick(world)

    assert cost(20) - cost(10) == {("read", "rule-state"): 10}


def test_more_batches_than_one_round_counts_are_counted_in_one_tick_and_start_one_run() -> None:
    """The oldest of them were long quiet when the newest arrived."""
    from trainmaster.orchestrator.flows.retraining.turn import MOST_BATCHES

    world = RuleWorld()
    quick = {"new_data": {"objects": f"gs://{DATA}/**", "min_objects": 1, "quiet_s": 1}}
    world.drop_rule(rule(quick, request=COUNTING))
    world.arrive(MOST_BATCHES)
    world.wait(30)
    world.arrive(10, first=MOST_BATCHES)
    world.tick_after(1)
    (record,) = world.records()
    assert present(record.request).document["args"] == [f"--seen={MOST_BATCHES + 10}"]
    assert world.batches() == []


def test_a_signal_reads_each_batch_of_arrivals_once_for_all_of_its_rules() -> None:
    world = MeteredWorld()
    for name in ("one", "two", "three"):
        request = {**COUNTING, "model_name": name}
        world.drop_rule(rule(STREAM, {"alert": {"policy": "drift"}}, request=request), f"rules/{name}.json")
    world.arrive(5)
    before = Counter(world.meter.operations)
    world.signal(world.alerted("1", "drift"))
    assert (Counter(world.meter.operations) - before)["read", "arrivals"] == 5
    assert len(world.records()) == 3
