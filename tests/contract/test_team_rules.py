"""The rules of two teams in one deployment: which runs, champions, data and templates each may use."""

import pytest

from tests.contract.retraining import MANUAL, SMALL
from tests.contract.schemas import RULE_BOOK
from tests.contract.teams import (
    SOURCE,
    SPEECH,
    VISION,
    drop,
    fired,
    ordered,
    policy_changes,
    put,
    trained,
    world_of_teams,
)
from tests.contract.world import CHAMPIONS, LEDGER, MODELS
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.adapters.pubsub import cloud_event
from trainmaster.orchestrator.core.policy.policy import Team
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, parse_notice
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.retraining.events import take_notice


@pytest.mark.parametrize("folder", ["", "strangers/", "Vision/", "/"])
def test_a_rule_in_no_teams_folder_is_refused(folder: str) -> None:
    world = world_of_teams()
    name = f"rules/{folder}again.json"
    world.drop_rule({"when": [MANUAL], "request": SMALL}, name)
    assert world.services().rule_book.read().book.rules == ()
    (status,) = world.objects.listing(LEDGER, "status/")
    assert "rules/speech/" in world.document(status.name)["reason"]


def test_an_order_fires_only_the_own_teams_rules_and_names_no_others() -> None:
    world = world_of_teams()
    assert put(world, VISION, MANUAL)["state"] == "accepted"
    refused = ordered(world, SPEECH, {"fire": {"rule": "vision.again"}})
    assert refused["state"] == "rejected"
    assert "none: no rule has been accepted" in str(refused)
    assert fired(world, "vision.again") == []
    assert ordered(world, VISION, {"fire": {"rule": "vision.again"}})["state"] == "succeeded"
    (record,) = fired(world, "vision.again")
    assert record.source.team == VISION
    assert record.output_uri == f"gs://{MODELS}/vision/again/{record.run_id}"


@pytest.mark.parametrize("event", ["succeeded", "promoted"])
def test_a_rule_follows_the_runs_and_champions_of_its_own_team_alone(event: str) -> None:
    world = world_of_teams()
    for team in (VISION, SPEECH):
        upstream = {"upstream": {"model_name": "cassava", "event": event}}
        assert put(world, team, upstream)["state"] == "accepted"
    trained(world, VISION, 0.9, "first")
    for notice in [each for each in world.notices.published if ".promoted." in each.type]:
        heard = instance_of(ParsedNotice, parse_notice(world.message(cloud_event(notice, SOURCE))))
        list(take_notice(world.services(), heard))
    assert [each.source.team for each in fired(world, "vision.again")] == [VISION]
    assert fired(world, "speech.again") == []


def test_a_rules_champion_is_its_own_teams() -> None:
    world = world_of_teams()
    own = trained(world, VISION, 0.5, "first").run_id
    other = trained(world, SPEECH, 0.9, "first").run_id
    from_other = drop(world, VISION, {**SMALL, "args": [f"--start_from={other}"]})
    assert from_other.problems[0].startswith("$.args[0]: there is no run with this id")
    request = {**SMALL, "args": ["--from=${champion.run_id:-none}", "--start_from=champion"]}
    put(world, VISION, MANUAL, request=request)
    ordered(world, VISION, {"fire": {"rule": "vision.again"}})
    (record,) = fired(world, "vision.again")
    copy = f"gs://{CHAMPIONS}/vision/cassava/{own}/"
    assert present(record.request).document["args"] == [f"--from={own}", f"--start_from={copy}"]


def test_a_cycle_through_another_teams_model_of_the_same_name_is_not_a_loop() -> None:
    world = world_of_teams()
    for team, own, other in ((VISION, "a", "b"), (SPEECH, "b", "a")):
        upstream = {"upstream": {"model_name": other, "event": "succeeded"}}
        assert put(world, team, upstream, request={**SMALL, "model_name": own})["state"] == "accepted"
    RULE_BOOK.validate(world.document("rules/book.json"))


def test_one_teams_rules_leave_room_for_the_others() -> None:
    world = world_of_teams(teams={f"team-{number}": Team() for number in range(500)})
    assert [put(world, "team-1", MANUAL, str(number))["state"] for number in range(3)] == [
        "accepted",
        "accepted",
        "refused",
    ]
    assert put(world, "team-2", MANUAL)["state"] == "accepted"


def test_rules_from_before_the_policy_named_teams_start_nothing_any_more() -> None:
    world = world_of_teams(teams={})
    with policy_changes(world):
        world.drop_rule({"when": [MANUAL], "request": SMALL}, "rules/vision/again.json")
    assert ordered(world, VISION, {"fire": {"rule": "vision.again"}})["state"] == "rejected"
    assert fired(world, "vision.again") == []


def test_a_scheduled_rule_from_before_the_policy_named_teams_is_refused_at_its_launch() -> None:
    world = world_of_teams(teams={})
    with policy_changes(world):
        world.drop_rule({"when": [{"schedule": {"cron": "* * * * *"}}], "request": SMALL}, "rules/again.json")
    world.tick_after(120)
    assert [each.state for each in fired(world, "again")] == [RunState.REJECTED]
