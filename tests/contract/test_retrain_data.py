"""What a firing counts and names still exists, and each object counts once, by its content, for one run."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from tests.contract.data_rules import ALL, MANIFEST, NEWEST, URI, env, fire_all, manifest, watching
from tests.contract.retraining import DATA, MANUAL, NEW_DATA, SMALL, RuleWorld, rule
from trainmaster.orchestrator.core.errors import TrainmasterError


def test_what_was_deleted_before_the_decision_is_not_named(world: RuleWorld) -> None:
    world.drop_rule(watching())
    for name in ("a/1.csv", "b/2.csv", "tmp/3.csv"):
        world.upload(name, name.encode())
        world.wait(1)
    world.objects.delete(DATA, "tmp/3.csv")
    world.tick_after(61)
    assert env(world) == {
        "COUNT": "2",
        "NEWEST": f"{URI}/b/2.csv",
        "DIR": f"{URI}/b/",
        "WATERMARK": "2026-03-01T12:00:01.000000Z",
        "DIRS": f"{URI}/a/,{URI}/b/",
        "SINCE": "never",
    }


def test_data_of_which_nothing_is_left_fires_no_rule_and_the_status_says_why(world: RuleWorld) -> None:
    world.drop_rule(watching(min_objects=2))
    for name in ("a/1.csv", "a/2.csv", "a/3.csv"):
        world.upload(name, name.encode())
    for name in ("a/1.csv", "a/3.csv"):
        world.objects.delete(DATA, name)
    world.tick_after(61)
    assert world.records() == []
    reason = "2 of the objects that had arrived are deleted or replaced; too few are left"
    assert world.rule_status()["held"]["reason"] == reason
    assert [folder.count for folder in world.state().waiting] == [1]
    world.upload("a/1.csv", b"a/1.csv")  # it is back, and counts again
    world.tick_after(61)
    assert env(world)["COUNT"] == "2"


def upload_thirty(world: RuleWorld) -> None:
    """Ten objects in each of three folders, a second apart."""
    for number in range(30):
        world.upload(f"{number // 10}/{number}.csv", b"%d" % number)
        world.wait(1)


def test_no_dead_object_is_named_where_the_newest_are_all_gone(world: RuleWorld) -> None:
    world.drop_rule(watching(NEWEST))
    upload_thirty(world)
    for number in range(20, 30):
        world.objects.delete(DATA, f"2/{number}.csv")
    world.tick_after(61)
    assert env(world) == {"COUNT": "20", "NEWEST": "none", "DIR": "none", "WATERMARK": "none"}


def test_the_same_bytes_written_again_count_once_and_other_bytes_as_one_object(world: RuleWorld) -> None:
    world.drop_rule(watching(min_objects=2))
    for content in (b"same", b"same", b"other", b"same"):
        world.upload("a.csv", content)
        world.wait(1)
    world.tick_after(61)
    assert world.records() == []
    assert sum(folder.count for folder in world.state().waiting) == 1
    world.upload("b.csv", b"b")
    world.tick_after(61)
    assert env(world)["COUNT"] == "2"


def test_the_same_bytes_written_again_after_a_firing_fire_no_other_and_other_bytes_do(
    world: RuleWorld,
) -> None:
    world.drop_rule(watching())
    for content, runs in ((b"same", 1), (b"same", 1), (b"other", 2), (b"other", 2)):
        world.upload("a.csv", content)
        assert fire_all(world) == runs


@pytest.mark.parametrize("env_of", [ALL, MANIFEST], ids=["counted", "by name"])
@pytest.mark.parametrize("copies", [1, 40])
def test_a_moved_object_counts_once_at_its_new_place(
    world: RuleWorld, env_of: dict[str, str], copies: int
) -> None:
    world.drop_rule(watching(env_of, MANUAL))
    for number in range(copies):
        world.upload(f"in/{number}.csv", b"%d" % number)
    world.wait(1)
    for number in range(copies):
        world.objects.delete(DATA, f"in/{number}.csv")
        world.upload(f"done/{number}.csv", b"%d" % number)
    world.tick_after(61)
    assert (env(world)["COUNT"], env(world)["DIR"]) == (str(copies), f"{URI}/done/")
    if env_of is MANIFEST:
        assert sorted(manifest(world)) == sorted(f"done/{number}.csv" for number in range(copies))
    world.finish(0)
    for number in range(copies):
        world.objects.delete(DATA, f"done/{number}.csv")
        world.upload(f"archive/{number}.csv", b"%d" % number)
    assert fire_all(world) == 1  # a run has had it


def test_a_copy_in_another_folder_counts_again_and_one_that_was_put_away_does_not(world: RuleWorld) -> None:
    world.drop_rule(watching())
    for folder, runs in (
        ("burst-1", 1),
        ("burst-2", 2),
        ("processed/burst-1", 2),
        ("burst-2/old", 2),
        ("burst-3", 3),
    ):
        for number in range(3):
            world.upload(f"{folder}/{number}.csv", b"%d" % number)
        assert fire_all(world) == runs
    assert (env(world)["COUNT"], env(world)["DIR"]) == ("3", f"{URI}/burst-3/")


@pytest.mark.parametrize("env_of", [ALL, MANIFEST], ids=["counted", "by name"])
def test_partitions_with_the_same_content_all_count(world: RuleWorld, env_of: dict[str, str]) -> None:
    world.drop_rule(watching(env_of, min_objects=3))
    days = [f"dt=2026-11-{day}" for day in (22, 23, 24)]
    for day in days:
        world.upload(f"{day}/a.csv", b"the same bytes")
        world.wait(1)
    world.tick_after(61)
    assert (env(world)["COUNT"], env(world)["DIRS"]) == ("3", ",".join(f"{URI}/{day}/" for day in days))


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
