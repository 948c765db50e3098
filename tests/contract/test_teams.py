"""Two teams in one deployment: every way by which one could reach the other's runs, rules, models and champions."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.contract.retraining import MANUAL, SMALL, RuleWorld
from tests.contract.world import (
    INBOX,
    LEDGER,
    MODELS,
    PROJECT,
    REGION,
    export_manifest,
    request_rules_with,
    schema,
)
from trainmaster.orchestrator.adapters.pubsub import cloud_event
from trainmaster.orchestrator.core.errors import PolicyInvalid
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.policy.team import Team
from trainmaster.orchestrator.core.requests.candidates import candidates_of
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.retraining.arrivals import parse_arrived_object
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, parse_notice
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take_message
from trainmaster.orchestrator.flows.retraining.turn import take_notice
from trainmaster.orchestrator.flows.services import Services

VISION, SPEECH = "vision", "speech"
TEAMS = {name: Team(requests_topic=f"requests-{name}") for name in (VISION, SPEECH)}
DATA = f"{PROJECT}-data"
SOURCE = f"//trainmaster/projects/{PROJECT}/locations/{REGION}"
HASH = "0" * 64
NEEDS = {"metric": "accuracy", "goal": "maximize"}
RECORD = Draft202012Validator(schema("run_record.v2"))
STATUS = Draft202012Validator(schema("drop_status.v1"))
NOTICE = Draft202012Validator(schema("notice.v1"))
CHAMPION = Draft202012Validator(schema("champion.v1"))
BOOK = Draft202012Validator(schema("rule_book.v1"))


def rules_with(**changes: Any) -> RequestRules:
    return request_rules_with(**{"regions": (REGION,), "admission": Admission(), "teams": TEAMS, **changes})


def world_of_teams(**changes: Any) -> RuleWorld:
    return RuleWorld(rules_with(**changes))


def account(team: str) -> str:
    return f"tm-trainer-{team}@{PROJECT}.iam.gserviceaccount.com"


def drop(world: RuleWorld, team: str, document: object = SMALL, stem: str = "cassava") -> RunRecord:
    """The record of what the team dropped."""
    world.wait(1)
    return dropped(world, f"requests/{team}/{stem}.json", document)


def dropped(world: RuleWorld, name: str, document: object = SMALL) -> RunRecord:
    incoming = world.drop(json.dumps(document).encode(), name)
    world.launch(incoming)
    return world.record(incoming.run_id)


def ordered(world: RuleWorld, team: str, order: object) -> Mapping[str, Any]:
    """The status of the team's order."""
    world.wait(1)
    world.launch(world.drop(json.dumps(order).encode(), f"requests/{team}/order.json"))
    return world.document(f"status/requests/{team}/order.json.json")


def published(
    world: RuleWorld,
    topic: str,
    document: object,
    message_id: str = "1",
    by: Services | None = None,
    /,
    **attributes: str,
) -> None:
    data = base64.b64encode(json.dumps(document).encode()).decode()
    message = {"messageId": message_id, "data": data, "attributes": attributes}
    now = world.clock.now()
    list(
        take_message(
            by or world.services(),
            Envelope(
                id=f"{topic}-{message_id}",
                type="google.cloud.pubsub.topic.v1.messagePublished",
                source=f"//pubsub.googleapis.com/projects/{PROJECT}/topics/{topic}",
                subject="",
                time=now,
                received_at=now,
                data={"message": message},
            ),
        )
    )


def trained(world: RuleWorld, team: str, accuracy: float, stem: str) -> RunRecord:
    """The record of a run of the team that has ended with this accuracy."""
    record = drop(world, team, {**SMALL, "champion": NEEDS}, stem)
    world.train(record)
    prefix = f"{record.output_uri}/model/".removeprefix(f"gs://{MODELS}/")
    manifest = {**export_manifest(f"gs://{MODELS}/{prefix}"), "metrics": {"accuracy": accuracy}}
    world.objects.write(MODELS, prefix + "export.json", json.dumps(manifest).encode(), if_generation=None)
    number = next(number for number, each in enumerate(world.records()) if each.run_id == record.run_id)
    world.finish(number)
    return world.record(record.run_id)


def champion(world: RuleWorld, team: str) -> dict[str, Any]:
    found = world.document(f"champions/{team}/cassava.json")
    CHAMPION.validate(found)
    return found


def put(world: RuleWorld, team: str, when: object, stem: str = "again", **more: object) -> Mapping[str, Any]:
    """The status of the team's rule."""
    world.wait(1)
    name = f"rules/{team}/{stem}.json"
    world.drop_rule({"when": [when], "request": {**SMALL, "model_name": "again"}, **more}, name)
    return world.rule_status(name)


def fired(world: RuleWorld, rule_id: str) -> list[RunRecord]:
    return [each for each in world.records() if each.source.rule_id == rule_id]


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
    (row,) = world.services().index.rows()
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


@pytest.mark.parametrize("folder", ["", "strangers/", "Vision/", "/"])
def test_a_rule_in_no_teams_folder_is_refused(folder: str) -> None:
    world = world_of_teams()
    name = f"rules/{folder}again.json"
    world.drop_rule({"when": [MANUAL], "request": SMALL}, name)
    assert world.services().rule_book.read().book.rules == ()
    (status,) = world.objects.listing(LEDGER, "status/")
    assert "rules/speech/" in world.document(status.name)["reason"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"service_account": account(SPEECH)}, "$.service_account"),
        ({"service_account": f"tm-trainer@{PROJECT}.iam.gserviceaccount.com"}, "$.service_account"),
        ({"output": {"prefix_uri": f"gs://{MODELS}"}}, "$.output.prefix_uri"),
        ({"output": {"prefix_uri": f"gs://{MODELS}/speech"}}, "$.output.prefix_uri"),
        ({"output": {"prefix_uri": f"gs://{MODELS}/vision-2"}}, "$.output.prefix_uri"),
        ({"model_uri": f"gs://{MODELS}/speech/cassava/${{run_id}}"}, "$.model_uri"),
        ({"model_uri": f"gs://{MODELS}/cassava/${{run_id}}"}, "$.model_uri"),
        (
            {
                "image": None,
                "script": {"file": "a.py", "archive": f"gs://{DATA}/speech/scripts/{HASH}.tar.gz"},
            },
            "$.script.archive",
        ),
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
        (f"{MODELS}/cassava", f"{MODELS}/vision/cassava"),
        (f'"gs://{MODELS}"', f'"gs://{MODELS}/vision"'),
        (f"{DATA}/speech", f"{DATA}/vision"),
        (f"{DATA}/scripts", f"{DATA}/vision/scripts"),
        ("tm-trainer-speech@", "tm-trainer-vision@"),
        ("tm-trainer@", "tm-trainer-vision@"),
    ):
        own = own.replace(other, mine)
    faults = drop(world, VISION, json.loads(own), "own").problems
    assert not any(each.startswith(f"{path}:") for each in faults), faults


def test_an_empty_output_is_the_teams_folder_too() -> None:
    record = drop(world_of_teams(), VISION, {**SMALL, "output": {}})
    assert record.output_uri == f"gs://{MODELS}/vision/cassava/{record.run_id}"


def test_a_team_with_images_of_its_own_may_use_no_others() -> None:
    own = Team(images=("us-docker.pkg.dev/my-project/vision/*",))
    world = world_of_teams(teams={**TEAMS, VISION: own})
    assert drop(world, VISION).state is RunState.REJECTED
    assert drop(world, SPEECH).state is RunState.SUBMITTED


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


def test_a_message_that_waits_for_a_readable_policy_says_so() -> None:
    def unreadable() -> RequestRules:
        raise PolicyInvalid("policy.yaml", ("a fault",))

    world = world_of_teams(teams={})
    broken = replace(world.services(), request_rules=unreadable)
    with pytest.raises(PolicyInvalid):
        published(world, "trainmaster-requests", SMALL, "1", broken)
    status = world.document("status/messages/1.json")
    assert (status["state"], "a fault" in status["reason"]) == ("retrying", True)
    published(world, "trainmaster-requests", SMALL)
    assert world.document("status/messages/1.json")["state"] == "submitted"


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


@pytest.mark.parametrize("event", ["succeeded", "promoted"])
def test_a_rule_follows_the_runs_and_champions_of_its_own_team_alone(event: str) -> None:
    world = world_of_teams()
    for team in (VISION, SPEECH):
        upstream = {"upstream": {"model_name": "cassava", "event": event}}
        assert put(world, team, upstream)["state"] == "accepted"
    trained(world, VISION, 0.9, "first")
    for notice in [each for each in world.notices.published if ".promoted." in each.type]:
        heard = parse_notice(world.message(cloud_event(notice, SOURCE)))
        assert isinstance(heard, ParsedNotice)
        list(take_notice(world.services(), heard))
    assert [each.source.team for each in fired(world, "vision.again")] == [VISION]
    assert fired(world, "speech.again") == []


def test_a_rules_champion_is_its_own_teams() -> None:
    world = world_of_teams()
    own = trained(world, VISION, 0.5, "first").run_id
    trained(world, SPEECH, 0.9, "first")
    request = {**SMALL, "args": ["--from=${champion.run_id:-none}"]}
    put(world, VISION, MANUAL, request=request)
    ordered(world, VISION, {"fire": {"rule": "vision.again"}})
    (record,) = fired(world, "vision.again")
    assert record.request is not None
    assert record.request.document["args"] == [f"--from={own}"]


@pytest.mark.parametrize(
    ("objects", "accepted"),
    [
        (f"gs://{DATA}/vision/**", True),
        (f"gs://{DATA}/vision/day-*/x.csv", True),
        (f"gs://{DATA}/shared/**", True),
        (f"gs://{DATA}/speech/**", False),
        (f"gs://{DATA}/**", False),
        (f"gs://{DATA}/*/x.csv", False),
        (f"gs://{DATA}/vision*/**", False),
        (f"gs://{DATA}/vision", False),
        (f"gs://{MODELS}/speech/**", False),
    ],
)
def test_a_rule_watches_only_its_teams_data(objects: str, accepted: bool) -> None:
    shared = Team(shared_prefixes=(f"gs://{DATA}/shared",))
    world = world_of_teams(teams={**TEAMS, VISION: shared})
    status = put(world, VISION, {"new_data": {"objects": objects}})
    assert status["state"] == ("accepted" if accepted else "refused"), status


def test_data_of_another_team_counts_for_no_rule() -> None:
    world = world_of_teams()
    put(world, VISION, {"new_data": {"objects": f"gs://{DATA}/vision/**", "quiet_s": 1}})
    for number, team in enumerate((SPEECH, VISION, SPEECH)):
        event = world.finalized(DATA, f"{team}/{number}.csv", 1000 + number, 10)
        world.log.append(parse_arrived_object(event))
    world.wait(60)
    world.tick()
    (record,) = fired(world, "vision.again")
    assert record.source.firing_values is not None
    assert record.source.firing_values["data.count"] == "1"
    assert record.source.firing_values["data.newest_uri"] == f"gs://{DATA}/vision/1.csv"


@pytest.mark.parametrize(
    ("template", "accepted"),
    [
        ("templates/vision/again.json", True),
        ("templates/speech/again.json", False),
        ("templates/again.json", False),
        ("vision/again.json", False),
        ("requests/speech/again.json", False),
    ],
)
def test_a_rules_template_is_in_its_teams_folder(template: str, accepted: bool) -> None:
    world = world_of_teams()
    content = json.dumps({**SMALL, "model_name": "again", "args": ["--secret"]}).encode()
    world.objects.write(INBOX, template, content, if_generation=None)
    name = "rules/vision/again.json"
    world.drop_rule({"when": [MANUAL], "request_uri": f"gs://{INBOX}/{template}"}, name)
    status = world.rule_status(name)
    assert status["state"] == ("accepted" if accepted else "refused"), status
    if not accepted:
        assert f"gs://{INBOX}/templates/vision/" in status["reason"]


def test_a_loop_through_another_teams_model_of_the_same_name_is_none() -> None:
    world = world_of_teams()
    for team, own, other in ((VISION, "a", "b"), (SPEECH, "b", "a")):
        upstream = {"upstream": {"model_name": other, "event": "succeeded"}}
        assert put(world, team, upstream, request={**SMALL, "model_name": own})["state"] == "accepted"
    BOOK.validate(world.document("rules/book.json"))


def test_a_limit_per_model_or_team_is_not_shared_between_teams() -> None:
    for limit in (Limit(jobs=1, per_model=True), Limit(jobs=1, per_team=True)):
        world = world_of_teams(admission=Admission(limits=(limit,)))
        states = [drop(world, team, stem=str(n)).state for n, team in enumerate((VISION, SPEECH, VISION))]
        assert states == [RunState.SUBMITTED, RunState.SUBMITTED, RunState.WAITING], limit


def test_one_teams_rules_leave_room_for_the_others() -> None:
    world = world_of_teams(teams={f"team-{number}": Team() for number in range(500)})
    assert [put(world, "team-1", MANUAL, str(number))["state"] for number in range(3)] == [
        "accepted",
        "accepted",
        "refused",
    ]
    assert put(world, "team-2", MANUAL)["state"] == "accepted"


@contextmanager
def policy_changes(world: RuleWorld, **changes: Any) -> Iterator[None]:
    yield
    world.request_rules = rules_with(**changes)


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
    world.wait(120)
    world.tick()
    assert [each.state for each in fired(world, "again")] == [RunState.REJECTED]


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


def test_without_teams_a_folder_is_only_a_name() -> None:
    world = world_of_teams(teams={})
    record = drop(world, VISION)
    assert record.state is RunState.SUBMITTED
    assert record.source.team is None
    assert record.output_uri == f"gs://{MODELS}/cassava/{record.run_id}"
