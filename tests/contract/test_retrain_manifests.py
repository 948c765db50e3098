"""A firing knows all that arrived, since when, and for which folder: no object is in two firings or in none."""

import pytest

from tests.contract.data_rules import ALL, MANIFEST, URI, env, fire_all, manifest, manifest_lines, watching
from tests.contract.retraining import DATA, MANUAL, RuleWorld
from tests.contract.world import LEDGER
from trainmaster.orchestrator.core.errors import AccessDenied
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.flows.retraining import data
from trainmaster.orchestrator.stores import rule_data


def test_a_firing_knows_since_when_its_data_is_new(world: RuleWorld) -> None:
    world.drop_rule(watching(ALL, MANUAL))
    world.upload("a.csv", b"a")
    assert fire_all(world) == 1
    world.order({"fire": {"rule": "cassava"}}, "1")  # takes no data
    world.finish(1)
    world.upload("b.csv", b"b")
    assert fire_all(world) == 3
    assert [env(world, number)["SINCE"] for number in range(3)] == [
        "never",
        env(world, 0)["WATERMARK"],
        env(world, 0)["WATERMARK"],
    ]
    assert env(world, 1)["COUNT"] == "0"


def test_too_many_folders_to_name_hold_a_firing_back_and_say_what_names_them(world: RuleWorld) -> None:
    world.drop_rule(watching(ALL))
    for number in range(100):
        world.upload(f"folder-{number:020}/a.csv", b"%d" % number)
    world.tick_after(61)
    assert world.records() == []
    assert world.rule_status()["held"]["reason"] == (
        "the value of ${data.dirs:-none} is longer than 2000 characters; ${data.manifest_uri} names every object"
    )
    assert sum(folder.count for folder in world.state().waiting) == 100


def test_a_manifest_lists_what_exists_of_the_batch(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST))
    for number in range(60):
        world.upload(f"{number % 3}/{number}.csv", b"%d" % number, has_checksum=number > 1)
    for number in range(5, 10):
        world.objects.delete(DATA, f"{number % 3}/{number}.csv")
    world.objects.write(DATA, "2/2.csv", b"2", if_generation=None)  # the same bytes: its event may come late
    world.objects.write(DATA, "0/3.csv", b"changed", if_generation=None)
    world.tick_after(61)
    (record,) = world.records()
    lines = manifest_lines(world, env(world)["MANIFEST"])
    left = [number for number in range(60) if number not in (3, 5, 6, 7, 8, 9)]
    assert sorted(line["uri"] for line in lines) == sorted(
        f"{URI}/{number % 3}/{number}.csv" for number in left
    )
    assert {line["uri"]: line["generation"] for line in lines} == {
        line["uri"]: world.objects.describe(*split_object_uri(line["uri"])).generation for line in lines
    }
    assert ["crc32c" in line for line in lines].count(False) == 2
    assert env(world)["COUNT"] == "54"
    assert env(world)["DIRS"] == f"{URI}/0/,{URI}/1/,{URI}/2/"
    assert record.run_id in env(world)["MANIFEST"]
    assert [each.name for each in world.objects.listing(LEDGER, "rule-data/")] == []
    world.finish(0)
    world.upload("0/3.csv", b"changed")  # its event
    assert fire_all(world) == 2
    assert manifest(world) == ["0/3.csv"]


@pytest.mark.parametrize("env_of", [ALL, MANIFEST], ids=["counted", "by name"])
def test_the_watermark_is_that_of_the_bytes_as_they_were_last_written(
    world: RuleWorld, env_of: dict[str, str]
) -> None:
    world.drop_rule(watching(env_of))
    for name in ("a.csv", "b.csv"):
        world.upload(name, name.encode())
    world.wait(5)
    world.objects.write(DATA, "a.csv", b"a.csv", if_generation=None)  # its event is still to come
    world.tick_after(61)
    assert (env(world)["NEWEST"], env(world)["COUNT"]) == (f"{URI}/a.csv", "2")
    assert env(world)["WATERMARK"] == "2026-03-01T12:00:05.000000Z"


def test_an_order_without_data_has_no_manifest(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST, MANUAL))
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert (env(world)["COUNT"], env(world)["MANIFEST"], env(world)["DIRS"]) == ("0", "none", "none")


def test_a_batch_beyond_a_manifest_fires_in_parts(world: RuleWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "CHUNK_MAX", 10)
    world.drop_rule(watching(MANIFEST))
    for number in range(35):
        world.upload(f"{number:02}.csv", b"%d" % number)
        if number % 7 == 0:
            world.tick_after(1)
    assert fire_all(world) == 4
    parts = [manifest(world, number) for number in range(4)]
    assert [len(part) for part in parts] == [10, 10, 10, 5]
    assert sorted(name for part in parts for name in part) == [f"{number:02}.csv" for number in range(35)]
    assert world.state().waiting == ()
    assert [each.name for each in world.objects.listing(LEDGER, "rule-data/")] == []


def test_each_new_folder_fires_once_oldest_first_with_its_own_data(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST, each="folder"))
    for day in (22, 23, 24):
        for name in ("a.csv", "b.csv"):
            world.upload(f"dt={day}/{name}", b"the same bytes")
            world.wait(1)
    assert fire_all(world) == 3
    for number, day in enumerate((22, 23, 24)):
        assert manifest(world, number) == [f"dt={day}/a.csv", f"dt={day}/b.csv"]
        assert env(world, number)["DIRS"] == env(world, number)["DIR"] == f"{URI}/dt={day}/"
        assert (env(world, number)["COUNT"], env(world, number)["NEWEST"]) == ("2", f"{URI}/dt={day}/b.csv")
    assert world.state().waiting == ()


def test_folders_of_many_objects_need_no_default(world: RuleWorld) -> None:
    """The newest objects that the state knows are all of the last folder."""
    names = ("newest_uri", "newest_dir_uri", "watermark", "dirs", "manifest_uri")
    world.drop_rule(watching({name.upper(): f"${{data.{name}}}" for name in names}, each="folder"))
    for folder in ("b", "a"):
        for number in range(12):
            world.upload(f"{folder}/{number:02}.csv", b"%d" % number)
        world.wait(1)
    assert fire_all(world) == 2
    assert [env(world, number)["NEWEST_URI"] for number in range(2)] == [f"{URI}/b/11.csv", f"{URI}/a/11.csv"]


def test_a_folder_waits_for_its_own_quiet_and_its_own_minimum(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST, each="folder", min_objects=2))
    world.upload("first/a.csv", b"a")
    for name in ("a.csv", "b.csv"):
        world.upload(f"second/{name}", b"b")
    world.wait(40)
    world.upload("third/a.csv", b"a")
    world.upload("third/b.csv", b"b")
    world.tick_after(21)
    assert [manifest(world)[0].partition("/")[0] for _ in world.records()] == ["second"]
    world.finish(0)
    assert fire_all(world) == 2
    assert [folder.dir_uri for folder in world.state().waiting] == [f"{URI}/first/"]


def test_a_folder_whose_data_is_gone_lets_the_next_one_fire(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST, each="folder"))
    for name in ("gone/a.csv", "there/a.csv"):
        world.upload(name, b"a")
        world.wait(1)
    world.objects.delete(DATA, "gone/a.csv")
    world.tick_after(61)
    assert manifest(world) == ["there/a.csv"]
    assert world.state().waiting == ()


def test_another_condition_takes_every_folder(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST, MANUAL, each="folder"))
    for day in (22, 23):
        world.upload(f"dt={day}/a.csv", b"a")
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert sorted(manifest(world)) == ["dt=22/a.csv", "dt=23/a.csv"]
    assert fire_all(world) == 1


def test_folders_beyond_the_bound_join_the_last_one(
    world: RuleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainmaster.orchestrator.core.retraining import waiting

    monkeypatch.setattr(waiting, "FOLDERS_MAX", 3)
    world.drop_rule(watching(MANIFEST, each="folder"))
    for number in range(6):
        world.upload(f"{number}/a.csv", b"a")
        world.wait(1)
    assert fire_all(world) == 3
    assert [manifest(world, number) for number in range(3)] == [
        ["0/a.csv"],
        ["1/a.csv"],
        [f"{number}/a.csv" for number in range(2, 6)],
    ]
    assert env(world)["DIRS"] == ",".join(f"{URI}/{number}/" for number in range(2, 6))


@pytest.mark.parametrize("env_of", [ALL, MANIFEST], ids=["counted", "by name"])
def test_a_bucket_that_the_deployment_may_not_read_is_named_as_it_arrived(
    world: RuleWorld, env_of: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise AccessDenied("Cloud Storage", f"read {URI}/a.csv", "storage.objects.get")

    monkeypatch.setattr(rule_data.WatchedObjects, "still", denied)
    world.drop_rule(watching(env_of))
    world.upload("a.csv", b"a")
    world.objects.delete(DATA, "a.csv")
    results = world.tick_after(61)
    assert env(world)["NEWEST"] == f"{URI}/a.csv"
    (notice,) = [each for each in results if each.severity == "NOTICE"]
    assert notice.message == (
        f"cassava: Cloud Storage does not let this deployment read {URI}/a.csv: storage.objects.get is not granted; "
        "deleted objects count as if they existed"
    )


def test_a_rule_that_begins_to_name_objects_names_the_newest_that_wait(world: RuleWorld) -> None:
    world.drop_rule(watching(ALL))
    for number in range(3):
        world.upload(f"{number}.csv", b"%d" % number)
    world.tick()
    world.drop_rule(watching(MANIFEST))
    world.upload("3.csv", b"3")
    world.tick_after(61)
    assert sorted(manifest(world)) == [f"{number}.csv" for number in range(4)]


def test_a_rule_that_names_objects_no_longer_keeps_none(world: RuleWorld) -> None:
    world.drop_rule(watching(MANIFEST))
    world.upload("0.csv", b"0")
    world.tick()
    assert len(list(world.objects.listing(LEDGER, "rule-data/"))) == 1
    world.drop_rule(watching(ALL))
    world.tick_after(61)
    assert (env(world)["COUNT"], list(world.objects.listing(LEDGER, "rule-data/"))) == ("1", [])
