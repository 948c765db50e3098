"""Two releases share a ledger for as long as a deployment takes: neither erases what the other wrote."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.retraining import MANUAL, SMALL, RuleWorld, rule
from tests.contract.rooms import ends, launched, states
from tests.contract.test_champions import run
from tests.contract.world import LEDGER, World
from trainmaster.orchestrator.core.runs.states import RunState


def extend(world: World, name: str, change: Callable[[Any], None]) -> None:
    """A newer release writes the document."""
    document = world.document(name)
    change(document)
    world.objects.write(LEDGER, name, json.dumps(document).encode(), if_generation=None)


def test_unknown_fields_of_a_record_and_its_status_survive_the_end_of_the_run(world: World) -> None:
    run_id = launched(world)
    name = f"runs/{run_id}.json"

    def newer(document: Any) -> None:
        document["carbon"] = {"grams": [1, 2]}
        document["request"]["zone"] = "a"
        document["history"][0]["why"] = "an upload"

    extend(world, name, newer)
    (status,) = [each.name for each in world.objects.listing(LEDGER, "status/")]
    extend(world, status, lambda document: document.update(carbon=1))
    ends(world, run_id)
    document = world.document(name)
    assert document["state"] == "succeeded"
    assert (document["carbon"], document["request"]["zone"]) == ({"grams": [1, 2]}, "a")
    assert [step.get("why") for step in document["history"]][:2] == ["an upload", None]
    assert (world.document(status)["state"], world.document(status)["carbon"]) == ("succeeded", 1)


def test_unknown_fields_of_the_rule_book_a_rules_state_and_its_status_survive(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL))
    for name in ("rule-state/cassava.json", "status/rules/cassava.json.json", "rules/book.json"):
        extend(world, name, lambda document: document.update(newer=1))
    extend(world, "rules/book.json", lambda book: book["rules"][0].update(newer=1))
    world.drop_rule(rule(MANUAL, request={**SMALL, "model_name": "other"}), "rules/other.json")
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert world.document("rule-state/cassava.json")["number"] == 1
    assert "newer" in world.document("rule-state/cassava.json")
    assert "newer" in world.document("status/rules/cassava.json.json")
    book = world.document("rules/book.json")
    assert "newer" in book
    assert [each.get("newer") for each in book["rules"]] == [1, None]


def test_unknown_fields_of_a_champion_survive_the_next_promotion(world: World) -> None:
    run(world, "a", 0.5)

    def newer(document: Any) -> None:
        document["newer"] = 1
        document["history"][0]["newer"] = 2

    extend(world, "champions/cassava-resnet50.json", newer)
    run(world, "b", 0.9)
    document = world.document("champions/cassava-resnet50.json")
    assert (document["newer"], [each.get("newer") for each in document["history"]]) == (1, [2, None])


@pytest.mark.parametrize("version", ["run_record.v1", "run_record.v3", None])
def test_a_record_of_another_version_changes_no_run_and_makes_no_noise(version: str | None) -> None:
    world = World()
    run_id, other = launched(world), launched(world)
    extend(world, f"runs/{run_id}.json", lambda document: document.update(schema=version))
    before = world.document(f"runs/{run_id}.json")
    world.train(world.record(other))
    for _ in range(2):
        (told,) = [each for each in world.reconcile() if each.run_id == run_id]
        assert (told.severity, told.event) == ("NOTICE", None)
        assert f"expected run_record.v2, found {version!r}" in told.message
        assert "Run the release that wrote it" in told.message
    assert (world.document(f"runs/{run_id}.json"), run_id in world.active()) == (before, True)
    assert states(world, other) == [RunState.SUCCEEDED]


def test_a_record_without_its_request_does_not_succeed_in_silence(world: World) -> None:
    run_id = launched(world)
    extend(world, f"runs/{run_id}.json", lambda document: document.pop("request"))
    ends(world, run_id)
    record = world.record(run_id)
    assert (record.state, record.model) == (RunState.SUCCEEDED, None)
    assert "the record has no request" in record.problems[-1]
