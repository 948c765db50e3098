"""The status of a drop or message is written at once, correct, and kept current even if its event fails; faults have a report."""

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.contract.boundaries import At, raising
from tests.contract.retraining import MANUAL, RuleWorld, rule
from tests.contract.rooms import Answering
from tests.contract.schemas import RECORD, REPORT, RULE_STATUS, STATUS
from tests.contract.world import INBOX, LEASE, LEDGER, OBJECT, REQUEST, ROOT, Boundary, World
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import ServiceFailed, SubmissionUnknown
from trainmaster.orchestrator.core.runs.drop_status import DELIVERIES_MAX
from trainmaster.orchestrator.flows.intake import take_and_admit, take_message, take_upload

NO_READ = ServiceFailed("Cloud Storage", "read gs://inbox/requests/cassava.yaml", "Forbidden: 403")


def told(world: World, name: str = OBJECT) -> dict[str, Any]:
    status = world.document(f"status/{name}.json")
    STATUS.validate(status)
    return status


def deliver(world: World, name: str, content: bytes = b"x", **changes: object) -> None:
    """The event of a file that is finalized in the inbox."""
    generation = world.objects.write(INBOX, name, content, if_generation=None)
    data = {"bucket": INBOX, "name": name, "generation": str(generation), "size": len(content), **changes}
    list(take_upload(world.services(), world.envelope(data)))


def failing(world: World, incoming: Any, boundary: Boundary, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(ServiceFailed):
            list(take_and_admit(world.services(boundary), incoming))


def message(world: World, document: object, attributes: Mapping[str, str] | None = None) -> Any:
    data = base64.b64encode(json.dumps(document).encode()).decode()
    return world.envelope({"message": {"data": data, "messageId": "42", "attributes": attributes or {}}})


def test_the_status_of_a_drop_is_accepted_before_its_job_is_submitted(world: World) -> None:
    incoming, seen = world.drop(), list[dict[str, Any]]()
    world.launch(incoming, At("submit", before=lambda: seen.append(told(world))))
    assert [(status["state"], status["run_id"]) for status in seen] == [("reserved", incoming.run_id)]


def test_the_status_names_job_log_model_and_metrics(world: World) -> None:
    incoming = world.drop_and_launch()
    job = world.train(world.record(incoming.run_id))
    job_id = job.name.rpartition("/")[2]
    logs = {
        "project": "my-project",
        "filter": f'resource.type="ml_job" AND resource.labels.job_id="{job_id}"',
    }
    before = told(world)
    assert (before["job_name"], before["logs"]) == (job.name, logs)
    assert not {"model_uri", "metrics"} & set(before)
    world.complete(world.hint(job))
    status = told(world)
    assert (status["state"], status["job_name"], status["logs"]) == ("succeeded", job.name, logs)
    assert (status["model_uri"], status["model_format"]) == (f"{job.output_uri}/model/", "saved_model")
    assert status["metrics"] == {"accuracy": 0.75, "loss": 1}


def test_the_status_of_a_refused_request_has_its_faults_and_how_many_more_there_are(world: World) -> None:
    world.launch(world.drop(b"model_name: 1\n" + b"".join(b"k%d: 1\n" % each for each in range(30))))
    status = told(world)
    assert status["state"] == "rejected"
    assert status["reason"].startswith(
        "the request was rejected for 32 faults, the first of them: $.image: missing"
    )
    assert status["problems"][0].startswith("$.image: missing")
    assert (len(status["problems"]), status["problems"][-1]) == (21, "and 12 more")


def test_the_status_of_a_name_is_of_its_newest_drop_and_names_the_run_before(world: World) -> None:
    first, second = world.drop(), world.drop()
    world.launch(second)
    world.launch(first)
    assert (told(world)["run_id"], "previous_run_id" in told(world)) == (second.run_id, False)
    world.clock.advance(timedelta(seconds=61))
    third = world.drop_and_launch()
    world.complete(world.hint(world.train(world.record(second.run_id))))
    assert (told(world)["run_id"], told(world)["previous_run_id"]) == (third.run_id, second.run_id)
    assert told(world)["state"] == "submitted"
    world.complete(world.hint(world.train(world.record(third.run_id))))
    assert (told(world)["state"], told(world)["previous_run_id"]) == ("succeeded", second.run_id)


def test_an_event_that_keeps_failing_has_a_status_that_says_why_until_it_succeeds(world: World) -> None:
    incoming = world.drop()
    fails = At("read inbox", before=raising(NO_READ))
    failing(world, incoming, fails)
    assert told(world)["reason"].startswith("delivery failed once because Cloud Storage could not read")
    failing(world, incoming, fails)
    status = told(world)
    assert (status["state"], status["failed_deliveries"]) == ("retrying", 2)
    assert "failed 2 times, most recently because Cloud Storage could not read" in status["reason"]
    assert "delivered again" in status["reason"]
    world.launch(incoming)
    assert (told(world)["state"], "reason" in told(world)) == ("submitted", False)


def test_an_event_that_failed_too_often_is_a_dead_letter_and_a_replay_is_retried(world: World) -> None:
    incoming = world.drop()
    fails = At("read inbox", before=raising(NO_READ))
    failing(world, incoming, fails, times=DELIVERIES_MAX)
    assert told(world)["state"] == "dead_letter"
    assert "`trainmaster dead-letters`" in told(world)["reason"]
    failing(world, incoming, fails)
    assert (told(world)["state"], told(world)["failed_deliveries"]) == ("retrying", 1)


def test_events_of_every_function_are_dead_letters_after_as_many_deliveries_as_statuses_say() -> None:
    topology = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text())
    letters = [function.get("dead_letter") for function in topology["functions"].values()]
    assert {letter["max_attempts"] for letter in letters if letter} == {DELIVERIES_MAX}


def test_a_run_whose_submission_keeps_failing_keeps_its_state_and_says_why(world: World) -> None:
    incoming = world.drop()
    with pytest.raises(SubmissionUnknown):
        list(take_and_admit(world.services(jobs=Answering(world, SubmissionUnknown("503"))), incoming))
    status = told(world)
    assert (status["state"], status["run_id"]) == ("reserved", incoming.run_id)
    assert "it is unknown whether the job was created: 503" in status["reason"]
    world.reconcile_after(LEASE)
    assert (told(world)["state"], "reason" in told(world)) == ("submitted", False)


def test_the_failure_of_an_older_drop_is_not_reported_for_a_newer_one(world: World) -> None:
    old, new = world.drop(), world.drop()
    world.launch(new)
    failing(world, old, At("describe inbox", before=raising(NO_READ)))
    assert (told(world)["state"], told(world)["run_id"]) == ("submitted", new.run_id)


def test_the_status_of_an_ignored_file_says_why_and_a_tools_file_has_none(world: World) -> None:
    deliver(world, "requests/.cassava.yaml.swp")
    assert list(world.objects.listing(LEDGER, "")) == []
    deliver(world, "data/1.csv")
    status = told(world, "data/1.csv")
    assert (status["state"], status["dropped_name"]) == ("ignored", "data/1.csv")
    assert "is not in requests/, rules/" in status["reason"]


def test_an_order_to_fire_a_rule_that_is_held_says_so_and_why(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL, cooldown_s=600))
    order = json.dumps({"fire": {"rule": "cassava"}}).encode()
    for number, state in ((1, "succeeded"), (2, "held")):
        name = f"requests/fire{number}.json"
        incoming = world.drop_and_launch(order, name)
        world.launch(incoming)
        assert told(world, name)["state"] == state
    status = told(world, "requests/fire2.json")
    assert status["reason"].startswith("its run ")
    assert status["record_uri"] == "gs://ledger/status/rules/cassava.json.json"


def test_a_rule_whose_event_keeps_failing_says_so_and_stays_in_force_until_it_succeeds() -> None:
    world = RuleWorld()
    world.drop_rule(rule(MANUAL))
    in_force = world.rule_status()["in_force"]
    world.wait(1)
    event = world.put_rule(rule(MANUAL, cooldown_s=600))
    with pytest.raises(ServiceFailed):
        world.deliver_rule(event, At("read inbox", before=raising(NO_READ)))
    status = world.rule_status()
    RULE_STATUS.validate(status)
    assert (status["state"], status["in_force"]) == ("retrying", in_force)
    assert "Cloud Storage could not read" in status["reason"]
    world.wait(1)
    world.deliver_rule(event)
    assert world.rule_status()["state"] == "accepted"


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({}, "messages/42"),
        ({"idempotency_key": ""}, "messages/42"),
        ({"idempotency_key": "nightly/1"}, "keys/nightly/1"),
    ],
)
def test_a_message_has_a_status_by_its_key_or_else_its_id(attributes: Mapping[str, str], name: str) -> None:
    world = World()
    list(take_message(world.services(), message(world, {"model_name": 1}, attributes)))
    status = told(world, name)
    assert (status["state"], status["message_id"]) == ("rejected", "42")
    assert status.get("idempotency_key") == (attributes.get("idempotency_key") or None)
    assert world.document(status["record_uri"].removeprefix("gs://ledger/"))["run_id"] == status["run_id"]


def test_no_file_of_the_inbox_has_the_status_of_a_message(world: World) -> None:
    list(take_message(world.services(), message(world, {"model_name": 1})))
    deliver(world, "messages/42")
    assert told(world, "messages/42")["state"] == "rejected"


def test_a_message_whose_event_fails_says_so_until_it_succeeds(world: World) -> None:
    event = message(world, {"model_name": 1})
    with pytest.raises(ServiceFailed):
        list(take_message(world.services(At("write rejected", before=raising(NO_READ))), event))
    assert told(world, "messages/42")["state"] == "retrying"
    world.clock.advance(timedelta(minutes=1))
    list(take_message(world.services(), event))
    assert told(world, "messages/42")["state"] == "rejected"


def test_a_refused_request_costs_eight_storage_operations_and_submits_nothing(world: World) -> None:
    boundary = Boundary()
    world.launch(world.drop(b"model_name: 1"), boundary)
    assert boundary.calls == [
        "read ledger",
        "describe inbox",
        "read inbox",
        "write active",
        "write rejected",
        "write runs",
        "write index",
        "write status",
    ]


def test_the_report_and_the_status_show_where_each_fault_is_but_no_secret(world: World) -> None:
    key = "AIza" + "Sy0123456789_abcdefghijklmnopqrstuv"
    text = b"env: {MAPS: %s, modle: 1}\n%s" % (key.encode(), REQUEST)
    incoming = world.drop_and_launch(text + b"imgae: x\n")
    report = world.document(f"rejected/{incoming.run_id}.json")
    REPORT.validate(report)
    faults = {fault["path"]: fault for fault in report["faults"]}
    last = text.count(b"\n") + 1
    place = {"line": last, "column": 1, "length": 5, "text": "imgae: x", "text_column": 1}
    assert place.items() <= faults["$.imgae"].items()
    assert (faults["$.env.MAPS"]["line"], faults["$.env.MAPS"].get("text")) == (1, None)
    assert (faults["$.env.modle"]["line"], faults["$.env.modle"].get("text")) == (1, None)
    status = world.document("status/requests/cassava.yaml.json")
    STATUS.validate(status)
    assert status["faults"] == report["faults"]
    assert status["report_uri"] == f"gs://ledger/rejected/{incoming.run_id}.json"
    record = encoded(world.record(incoming.run_id))
    RECORD.validate(record)
    assert key not in str((report, status, record))


def test_the_notice_of_a_rejection_goes_out_with_the_next_reconcile_pass(world: World) -> None:
    incoming = world.drop_and_launch(b"[]")
    assert world.notices.published == []
    world.reconcile()
    world.reconcile()
    assert [notice.id for notice in world.notices.published] == [f"{incoming.run_id}/rejected"]
