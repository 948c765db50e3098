"""Two teams in one deployment: every way by which one could reach the other's runs, rules, data, models and champions."""

import json
from typing import Any

import pytest

from tests.contract.index import index_rows
from tests.contract.retraining import MANUAL, SMALL
from tests.contract.schemas import NOTICE, RECORD, RULE_BOOK, STATUS
from tests.contract.teams import (
    DATA,
    HASH,
    SOURCE,
    SPEECH,
    TEAMS,
    VISION,
    account,
    champion,
    drop,
    dropped,
    fired,
    ordered,
    policy_changes,
    published,
    put,
    trained,
    world_of_teams,
)
from tests.contract.world import CHAMPIONS, LEDGER, MODELS, PROJECT
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.notices.notice import cloud_event
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.policy.policy import Team
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, parse_notice
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.retraining.events import take_notice


def test_a_teams_run_writes_into_its_folder_as_its_account_and_says_so_everywhere() -> None:
    world = world_of_teams()
    record = drop(world, VISION)
    assert record.state is RunState.SUBMITTED
    assert record.output_uri == f"gs://{MODELS}/vision/cassava/{record.run_id}"
    (candidate,) = candidates_of(record)
    body: Any = submission_of(record.run_id, candidate.spec, world.services().target).body
    assert body["jobSpec"]["serviceAccount"] == account(VISION)
    assert body["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"] == record.output_uri
    assert record.source.team == VISION
    RECORD.validate(world.document(f"runs/{record.run_id}.json"))
    status = world.document("status/requests/vision/cassava.json.json")
    STATUS.validate(status)
    assert status["team"] == VISION
    (row,) = index_rows(world.objects)
    assert row.team == VISION


@pytest.mark.parametrize(
    "folder", ["", "strangers/", "Vision/", "/", "visio/", "vision-2/", "../requests/vision/"]
)
def test_a_request_in_no_teams_folder_is_refused_and_lists_the_folders(folder: str) -> None:
    world = world_of_teams()
    record = dropped(world, f"requests/{folder}cassava.json")
    assert record.state is RunState.REJECTED
    assert "requests/vision/" in record.problems[0]
    assert "requests/speech/" in record.problems[0]
    assert list(world.jobs.all()) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"service_account": account(SPEECH)}, "$.service_account"),
        ({"service_account": f"tm-trainer@{PROJECT}.iam.gserviceaccount.com"}, "$.service_account"),
        ({"output": {"prefix_uri": f"gs://{MODELS}"}}, "$.output.prefix_uri"),
        ({"output": {"prefix_uri": f"gs://{MODELS}/vision-2"}}, "$.output.prefix_uri"),
        ({"model_uri": f"gs://{MODELS}/speech/cassava/${{run_id}}"}, "$.model_uri"),
        (
            {"image": None, "script": {"file": "a.py", "archive": f"gs://{DATA}/scripts/{HASH}.tar.gz"}},
            "$.script.archive",
        ),
        (
            {
                "image": None,
                "python_package": {
                    "executor_image": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest",
                    "uris": [f"gs://{DATA}/speech/p.tar.gz"],
                    "module": "task",
                },
            },
            "$.python_package.uris[0]",
        ),
    ],
)
def test_a_request_cannot_name_what_is_another_teams_or_nobodys(changes: dict[str, Any], path: str) -> None:
    """The same with the team's own folder or account has no fault there."""
    document = {key: value for key, value in {**SMALL, **changes}.items() if value is not None}
    world = world_of_teams()
    assert any(each.startswith(f"{path}:") for each in drop(world, VISION, document).problems)
    own = json.dumps(document)
    for other, mine in (
        (f"{MODELS}/speech", f"{MODELS}/vision"),
        (f"{MODELS}/vision-2", f"{MODELS}/vision/2"),
        (f'"gs://{MODELS}"', f'"gs://{MODELS}/vision"'),
        (f"{DATA}/speech", f"{DATA}/vision"),
        (f"{DATA}/scripts", f"{DATA}/vision/scripts"),
        ("tm-trainer-speech@", "tm-trainer-vision@"),
        ("tm-trainer@", "tm-trainer-vision@"),
    ):
        own = own.replace(other, mine)
    faults = drop(world, VISION, json.loads(own), "own").problems
    assert not any(each.startswith(f"{path}:") for each in faults), faults


def test_a_label_says_nothing_about_the_team() -> None:
    record = drop(world_of_teams(), VISION, {**SMALL, "labels": {"team": SPEECH}})
    assert (record.source.team, record.output_uri) == (
        VISION,
        f"gs://{MODELS}/vision/cassava/{record.run_id}",
    )


def test_a_message_belongs_to_the_team_of_its_topic_whatever_it_says() -> None:
    world = world_of_teams()
    published(world, "requests-speech", SMALL, team=VISION, source="requests-vision")
    (record,) = world.records()
    assert (record.source.team, record.state) == (SPEECH, RunState.SUBMITTED)
    assert world.document("status/messages/speech/1.json")["state"] == "submitted"


@pytest.mark.parametrize("topic", ["trainmaster-requests", "requests-vision-2", ""])
def test_a_message_on_a_topic_of_no_team_is_refused(topic: str) -> None:
    world = world_of_teams()
    published(world, topic, SMALL, team=VISION)
    published(world, topic, {"cancel": {"run": "a-run"}}, "2", team=VISION)
    assert [each.state for each in world.records()] == [RunState.REJECTED, RunState.REJECTED]
    assert all("requests-vision" in each.problems[0] for each in world.records())


def test_the_shared_topic_speaks_for_the_one_team_that_the_policy_gives_it_to() -> None:
    world = world_of_teams(teams={**TEAMS, SPEECH: Team(requests_topic="trainmaster-requests")})
    published(world, "trainmaster-requests", SMALL)
    assert world.records()[0].source.team == SPEECH


@pytest.mark.parametrize("attribute", ["idempotency_key", "trainmaster_replayed_id"])
def test_the_same_key_or_id_in_two_teams_names_two_runs(attribute: str) -> None:
    """A team can neither take another's key first, nor find its run under it, nor overwrite its status."""
    world = world_of_teams()
    for team in (VISION, SPEECH):
        published(world, f"requests-{team}", SMALL, "7", **{attribute: "nightly"})
    published(world, "trainmaster-requests", SMALL, "8", **{attribute: "vision/nightly"})
    assert sorted(str(each.source.team) for each in world.records()) == ["-", SPEECH, VISION]
    folder = "keys" if attribute == "idempotency_key" else "messages"
    for team in (VISION, SPEECH):
        status = world.document(f"status/{folder}/{team}/nightly.json")
        assert (status["state"], status["team"]) == ("submitted", team)


def test_a_dry_run_is_checked_for_the_team_of_its_topic() -> None:
    world = world_of_teams()
    for number, topic in enumerate(("requests-vision", "requests-speech", "trainmaster-requests")):
        asked = {"dry_run": "true", "self_test_id": f"{number:032x}"}
        published(world, topic, {**SMALL, "service_account": account(VISION)}, str(number), **asked)
    answers = [world.document(f"self-test/{number:032x}.json")["verdict"]["accepted"] for number in range(3)]
    assert answers == [True, False, False]


def test_an_order_cancels_only_the_own_teams_runs() -> None:
    world = world_of_teams()
    record = drop(world, VISION)
    refused = ordered(world, SPEECH, {"cancel": {"run": record.run_id}})
    assert (refused["state"], "no run has this id" in str(refused)) == ("rejected", True)
    assert world.record(record.run_id).cancel_requested_at is None
    assert ordered(world, VISION, {"cancel": {"run": record.run_id}})["state"] == "succeeded"
    assert world.record(record.run_id).cancel_requested_at is not None


def test_two_teams_have_a_champion_each_under_one_name() -> None:
    world = world_of_teams()
    first = {team: trained(world, team, 0.5, "first").run_id for team in (VISION, SPEECH)}
    better = trained(world, VISION, 0.9, "better").run_id
    assert champion(world, VISION)["current"]["run_id"] == better
    assert champion(world, SPEECH)["current"]["run_id"] == first[SPEECH]
    assert (champion(world, SPEECH)["team"], len(champion(world, SPEECH)["history"])) == (SPEECH, 1)
    promoted = [each for each in world.notices.published if ".promoted." in each.type]
    assert sorted((each.id, each.data["team"]) for each in promoted) == [
        ("champions/speech/cassava/1", SPEECH),
        ("champions/vision/cassava/1", VISION),
        ("champions/vision/cassava/2", VISION),
    ]
    for notice in world.notices.published:
        NOTICE.validate(cloud_event(notice, SOURCE))
    refused = ordered(world, SPEECH, {"rollback": {"model_name": "cassava", "to_run": first[VISION]}})
    assert refused["state"] == "rejected"
    assert ordered(world, VISION, {"rollback": {"model_name": "cassava"}})["state"] == "succeeded"
    assert champion(world, VISION)["current"]["run_id"] == first[VISION]
    assert champion(world, SPEECH)["current"]["run_id"] == first[SPEECH]


def test_a_limit_per_model_or_team_is_not_shared_between_teams() -> None:
    for limit in (Limit(jobs=1, per_model=True), Limit(jobs=1, per_team=True)):
        world = world_of_teams(admission=Admission(limits=(limit,)))
        states = [drop(world, team, stem=str(n)).state for n, team in enumerate((VISION, SPEECH, VISION))]
        assert states == [RunState.SUBMITTED, RunState.SUBMITTED, RunState.WAITING], limit


def test_a_waiting_run_whose_team_the_policy_no_longer_has_gets_no_job() -> None:
    world = world_of_teams(admission=Admission(limits=(Limit(jobs=1),)))
    with policy_changes(world, teams={SPEECH: TEAMS[SPEECH]}):
        running = drop(world, SPEECH)
        waiting = drop(world, VISION, stem="second")
    assert waiting.state is RunState.WAITING
    world.train(running)
    world.finish(0)
    assert world.record(waiting.run_id).state is RunState.FAILED
    assert "none of the policy's teams" in str(world.record(waiting.run_id).failure)


@pytest.mark.parametrize("folder", ["", "strangers/", "Vision/", "/"])
def test_a_rule_in_no_teams_folder_is_refused(folder: str) -> None:
    world = world_of_teams()
    name = f"rules/{folder}again.json"
    world.drop_rule({"when": [MANUAL], "request": SMALL}, name)
    assert world.services().rule_book.read().document.rules == ()
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


def test_a_scheduled_rule_from_before_the_policy_named_teams_is_refused_at_its_launch() -> None:
    world = world_of_teams(teams={})
    with policy_changes(world):
        world.drop_rule({"when": [{"schedule": {"cron": "* * * * *"}}], "request": SMALL}, "rules/again.json")
    world.tick_after(120)
    assert [each.state for each in fired(world, "again")] == [RunState.REJECTED]
