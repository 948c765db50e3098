"""Objects that have arrived are counted for one run, whatever fires the rule."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tests.contract.retraining import MANUAL, NEW_DATA, SMALL, RuleWorld, rule
from trainmaster.orchestrator.core.errors import TrainmasterError


def counting(*conditions: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """A rule for new data and these conditions, whose run gets the number of objects."""
    return rule(NEW_DATA, *conditions, request={**SMALL, "args": ["--seen=${data.count}"]}, **more)


def seen(world: RuleWorld) -> list[object]:
    """The arguments of each run that has any."""
    found = [record.request.document.get("args") for record in world.records() if record.request is not None]
    return [args for args in found if args]


def test_objects_that_arrived_before_an_order_belong_to_its_run_and_fire_no_other(world: RuleWorld) -> None:
    world.drop_rule(counting(MANUAL))
    world.drop_rule(rule(request={**SMALL, "model_name": "other"}), "rules/other.json")
    world.arrive(3)
    world.wait(30)
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert seen(world) == [["--seen=3"]]
    world.tick_after(31)
    assert [record.source.rule_id for record in world.records()] == ["cassava", "other"]
    world.finish(0)
    world.arrive(3, first=3)
    world.tick()
    world.tick_after(61)
    assert seen(world) == [["--seen=3"], ["--seen=3"]]
    assert world.batches() == []


def test_an_order_that_is_held_back_keeps_the_count_for_the_firing_by_data(world: RuleWorld) -> None:
    world.drop_rule(counting(MANUAL, cooldown_s=90))
    world.order({"fire": {"rule": "cassava"}}, "1")
    world.finish(0)
    world.arrive(3)
    world.order({"fire": {"rule": "cassava"}}, "2")
    world.tick_after(91)
    assert seen(world) == [["--seen=0"], ["--seen=3"]]


def test_orders_and_ticks_at_once_give_each_object_to_one_run(world: RuleWorld) -> None:
    world.drop_rule(counting(MANUAL, while_running="replace"))
    world.arrive(40)
    world.wait(61)

    def order(number: int) -> None:
        with suppress(TrainmasterError):  # it lost every race: Pub/Sub delivers the order again
            world.order({"fire": {"rule": "cassava"}}, str(number))

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(order, number) for number in range(4)] + [
            pool.submit(world.tick) for _ in range(4)
        ]
    for each in done:
        each.result()
    world.tick_after(61)
    counts = [int(args[0].removeprefix("--seen=")) for args in seen(world) if isinstance(args, list)]
    assert sum(counts) == 40
