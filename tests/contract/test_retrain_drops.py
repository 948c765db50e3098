"""Rules are dropped, refused, changed and deleted."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.boundaries import CountedObjects
from tests.contract.retraining import MANUAL, NEW_DATA, SMALL, RuleWorld, rule
from tests.contract.schemas import REPORT, RULE_STATUS
from tests.contract.world import INBOX, LEDGER
from trainmaster.orchestrator.stores.inbox import LISTED_MAX, Inbox


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (rule(request={**SMALL, "image": "docker.io/evil/miner"}), "$.request.image"),
        (b"a: [1", "$"),
        (b" " * 100_000, "$"),
    ],
)
def test_a_faulty_rule_is_refused_with_every_fault(world: RuleWorld, document: object, path: str) -> None:
    result = world.drop_rule(document)
    assert result.severity == "WARNING"
    told = world.rule_status()
    RULE_STATUS.validate(told)
    assert told["state"] == "refused"
    report = world.document(told["report_uri"].removeprefix(f"gs://{LEDGER}/"))
    REPORT.validate(report)
    assert path in [fault["path"] for fault in report["faults"]]


def test_a_refused_version_leaves_the_older_one_in_force(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL))
    world.wait(1)
    world.drop_rule(b"when: nonsense")
    told = world.rule_status()
    assert told["state"] == "refused"
    assert told["in_force"] < told["generation"]
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert len(world.records()) == 1


def test_two_rules_dropped_at_once_that_make_a_loop_are_not_both_accepted(world: RuleWorld) -> None:
    def on(model_name: str, other: str) -> dict[str, Any]:
        return rule(
            {"upstream": {"model_name": other, "event": "succeeded"}},
            request={**SMALL, "model_name": model_name},
        )

    events = [world.put_rule(on("a", "b"), "rules/a.json"), world.put_rule(on("b", "a"), "rules/b.json")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(world.deliver_rule, events))
    states = [world.rule_status(f"rules/{name}.json")["state"] for name in ("a", "b")]
    assert sorted(states) == ["accepted", "refused"]


def test_a_drop_whose_event_was_lost_is_accepted_by_the_tick(world: RuleWorld) -> None:
    world.put_rule(rule(MANUAL))
    world.put_rule({"when": []}, "rules/faulty.json")
    world.tick()
    assert world.rule_status()["state"] == "accepted"
    assert world.rule_status("rules/faulty.json")["state"] == "refused"
    assert world.tick() == []  # both are answered


def test_a_rule_whose_file_was_deleted_is_retired_and_fires_no_more(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL))
    world.objects.delete(INBOX, "rules/cassava.json")
    world.tick()
    assert world.rule_status()["state"] == "retired"
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert [record.state for record in world.records()] == ["rejected"]


@pytest.mark.parametrize(("pauses", "fired"), [(False, ["submitted"]), (True, [])])
def test_a_signal_fires_a_deleted_rule_until_the_tick(
    world: RuleWorld, pauses: bool, fired: list[str]
) -> None:
    alert = {"alert": {"policy": "Drift*"}}
    world.drop_rule(rule(alert))
    if pauses:
        world.drop_rule(rule(alert, enabled=False))
    world.remove_rule()
    world.signal(world.alerted("1", "Drift of cassava"))
    assert [record.state for record in world.records()] == fired
    world.tick()
    world.signal(world.alerted("2", "Drift of cassava"))
    assert [record.state for record in world.records()] == fired


def test_an_older_generations_event_changes_nothing(world: RuleWorld) -> None:
    late = world.put_rule(rule(MANUAL))
    world.drop_rule(rule(NEW_DATA))
    world.deliver_rule(late)
    (kept,) = world.document("rules/book.json")["rules"]
    assert kept["document"]["when"] == [NEW_DATA]
    assert world.rule_status()["generation"] == kept["generation"]


def test_data_of_a_disabled_rule_is_not_counted(world: RuleWorld) -> None:
    world.drop_rule(rule(enabled=False))
    assert world.rule_status()["state"] == "disabled"
    world.arrive(5)
    world.tick_after(61)
    assert world.records() == []
    assert world.batches() == []


def test_files_that_are_no_rules_neither_lengthen_the_listing_nor_retire_a_rule(world: RuleWorld) -> None:
    world.objects = objects = CountedObjects(world.clock)
    world.drop_rule(rule(MANUAL), "rules/zebra.json")
    for number in range(LISTED_MAX + 1_000):
        world.objects.write(INBOX, f"rules/{number}.txt", b"", if_generation=None)
    files, _ = Inbox(objects, INBOX).rules()
    assert (objects.listed, files) == (LISTED_MAX, [])
    world.tick()
    assert world.rule_status("rules/zebra.json")["state"] == "accepted"


def test_a_rule_that_is_paused_after_a_firing_keeps_its_last_run(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL))
    for number in (1, 2):
        world.order({"fire": {"rule": "cassava"}}, f"fire-{number}")
        world.finish(number - 1)
        world.wait(1)
    fired = world.rule_status()["last_firing"]
    assert fired["number"] == 2
    world.drop_rule({**rule(MANUAL), "enabled": False})
    paused = world.rule_status()
    assert (paused["state"], paused["firings"], paused["last_firing"]) == ("disabled", 2, fired)


@pytest.mark.parametrize(
    ("name", "changes", "state"),
    [
        ("rules/old/cassava.json", {}, "refused"),
        ("rules/cassava-copy.json", {}, "refused"),
        ("rules/old/cassava.json", {"max_per_day": 3}, "accepted"),
        ("rules/other.json", {}, "accepted"),
    ],
)
def test_a_copy_of_a_rule_that_is_put_away_is_no_rule(
    world: RuleWorld, name: str, changes: dict[str, object], state: str
) -> None:
    world.drop_rule(rule(MANUAL))
    world.drop_rule({**rule(MANUAL), **changes}, name)
    assert world.rule_status(name)["state"] == state
    assert world.rule_status()["state"] == "accepted"
    assert len(world.services().rule_book.read().document.rules) == (1 if state == "refused" else 2)
