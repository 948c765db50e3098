"""From a dropped rule to a launched run."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.contract.boundaries import At
from tests.contract.retraining import IMAGE, MANUAL, NEW_DATA, SMALL, RuleWorld, rule
from tests.contract.schemas import RECORD, RULE_BOOK, RULE_STATE, RULE_STATUS
from tests.contract.world import INBOX, LEASE, LEDGER, Boundary, Killed, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import DocumentDamaged
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MIB


def test_data_that_arrived_and_went_quiet_starts_one_run(world: RuleWorld) -> None:
    world.drop_rule(rule())
    world.arrive(5)
    world.tick()
    assert world.records() == []
    world.tick_after(61)
    world.tick_after(60)
    (record,) = world.records()
    assert record.state == "submitted"
    assert present(record.request).document["args"] == ["--seen=5"]
    assert (record.source.kind, record.source.rule_id, record.source.firing) == ("rule", "cassava", 1)
    assert record.source.uri == f"gs://{INBOX}/rules/cassava.json"
    assert world.batches() == []
    for name, validator in (
        (f"runs/{record.run_id}.json", RECORD),
        ("rule-state/cassava.json", RULE_STATE),
        ("rules/book.json", RULE_BOOK),
        ("status/rules/cassava.json.json", RULE_STATUS),
    ):
        validator.validate(world.document(name))


URI = f"gs://{INBOX}/templates/cassava.json"


def put_template(world: RuleWorld, **changes: object) -> int:
    content = json.dumps({**SMALL, **changes}).encode()
    return world.objects.write(INBOX, "templates/cassava.json", content, if_generation=None)


@pytest.mark.parametrize(
    "swapped",
    [None, {"args": ["--epochs=2"]}, {"model_name": "other"}, {"output": {"prefix_uri": "gs://elsewhere/x"}}],
    ids=["deleted", "args", "model name", "output"],
)
def test_a_rule_fires_with_the_template_that_was_accepted(
    world: RuleWorld, swapped: dict[str, object] | None
) -> None:
    generation = put_template(world, args=["--epochs=1"])
    document = {"when": [MANUAL], "request_uri": URI}
    world.drop_rule(document)
    if swapped is None:
        world.objects.delete(INBOX, "templates/cassava.json")
    else:
        put_template(world, **swapped)
    world.order({"fire": {"rule": "cassava"}}, "1")
    (record,) = world.records()
    assert record.request is not None
    assert record.request.model_name == "cassava"
    assert record.request.document["args"] == ["--epochs=1"]
    assert (record.source.template_uri, record.source.template_generation) == (URI, generation)
    RECORD.validate(encoded(record))
    world.finish(0)
    newer = put_template(world, args=["--epochs=3"])
    world.drop_rule(document)
    world.order({"fire": {"rule": "cassava"}}, "2")
    record = world.records()[-1]
    assert (present(record.request).document["args"], record.source.template_generation) == (
        ["--epochs=3"],
        newer,
    )


def test_a_template_that_is_swapped_while_its_rule_is_checked_does_not_fire(world: RuleWorld) -> None:
    put_template(world, args=["--epochs=1"])
    event = world.put_rule({"when": [MANUAL], "request_uri": URI})
    world.deliver_rule(event, At("write templates", before=lambda: put_template(world, args=["--swapped"])))
    world.order({"fire": {"rule": "cassava"}}, "1")
    (record,) = world.records()
    assert present(record.request).document["args"] == ["--epochs=1"]


@pytest.mark.parametrize("content", [None, b"model_name: other"], ids=["gone", "changed"])
def test_a_firing_without_the_accepted_template_is_abandoned(world: RuleWorld, content: bytes | None) -> None:
    put_template(world)
    world.drop_rule({"when": [MANUAL], "request_uri": URI})
    (copy,) = [each.name for each in world.objects.listing(LEDGER, "templates/")]
    if content is None:
        world.objects.delete(LEDGER, copy)
    else:
        world.objects.write(LEDGER, copy, content, if_generation=None)
    world.order({"fire": {"rule": "cassava"}}, "1")
    assert world.records() == []
    assert "no copy of the template" in world.rule_status()["held"]["reason"]
    world.tick()
    assert world.records() == []  # that firing is over


def test_an_old_champion_is_retrained_from_where_it_ended(world: RuleWorld) -> None:
    request = {
        **SMALL,
        "args": ["--from=${champion.model_uri:-none}"],
        "champion": {"metric": "accuracy", "goal": "maximize"},
    }
    world.drop_rule(rule(MANUAL, {"age": {"older_than_s": 3600}}, request=request))
    world.order({"fire": {"rule": "cassava"}}, "1")
    world.finish(0)
    world.tick_after(3000)
    assert len(world.records()) == 1
    world.tick_after(3600)
    first, second = world.records()
    assert present(second.request).document["args"] == [f"--from=gs://champions/cassava/{first.run_id}/"]
    assert second.source.condition == "age"


def test_an_order_for_no_rule_is_rejected_with_the_nearest_name(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL))
    world.drop_rule(rule(NEW_DATA), "rules/silent.json")
    world.order({"fire": {"rule": "casava"}}, "1")
    world.order({"fire": {"rule": "silent"}}, "2")
    rejected = [record.problems[0] for record in world.records()]
    assert any("did you mean 'cassava'" in problem for problem in rejected)
    assert any("does not accept orders to fire" in problem for problem in rejected)


@pytest.mark.parametrize("is_used_up", [False, True], ids=["may fire", "max_per_day is used up"])
def test_an_order_for_a_removed_rule_not_yet_retired_is_refused(world: RuleWorld, is_used_up: bool) -> None:
    world.drop_rule(rule(MANUAL, max_per_day=1))
    if is_used_up:
        world.order({"fire": {"rule": "cassava"}}, "1")
        world.finish(0)
    world.remove_rule()
    world.order({"fire": {"rule": "cassava"}}, "2")
    status = world.document("status/keys/2.json")
    assert status["state"] == "rejected"
    assert "the rule cassava is removed" in status["problems"][0]
    assert world.state().number == int(is_used_up)


def test_an_order_redelivered_after_its_rule_was_removed_is_not_refused(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL))
    world.order({"fire": {"rule": "cassava"}}, "same")
    world.remove_rule()
    world.order({"fire": {"rule": "cassava"}}, "same")
    assert world.document("status/keys/same.json")["state"] == "succeeded"
    assert len(world.records()) == 1


def test_a_firing_that_is_held_during_a_slow_launch_stays_in_the_status(world: RuleWorld) -> None:
    world.drop_rule(rule(MANUAL, while_running="queue_one"))

    def fire_again() -> None:
        world.wait(1)
        world.order({"fire": {"rule": "cassava"}}, "2")
        world.wait(1)

    world.order({"fire": {"rule": "cassava"}}, "1", At("submit", after=fire_again))
    assert len(world.jobs.all()) == 1
    assert "still running" in world.rule_status()["held"]["reason"]


def test_replace_waits_while_the_run_to_be_replaced_is_being_submitted(world: RuleWorld) -> None:
    """Cancelling it then would miss the job that is about to be created."""
    world.drop_rule(rule(MANUAL, while_running="replace"))
    world.order({"fire": {"rule": "cassava"}}, "1")
    (record,) = world.records()
    name = f"runs/{record.run_id}.json"
    reserved = world.document(name)
    reserved["state"], reserved["history"] = "reserved", reserved["history"][:1]
    reserved["submission"]["lease"] = {"attempt": "x", "expires_at": (world.clock.now() + LEASE).isoformat()}
    del reserved["job"]
    world.objects.write(LEDGER, name, json.dumps(reserved).encode(), if_generation=None)
    world.order({"fire": {"rule": "cassava"}}, "2")
    assert len(world.records()) == 1
    world.wait(LEASE.total_seconds() + 1)
    world.reconcile()  # adopts the job
    world.tick()
    first, second = world.records()
    assert second.source.firing == 2
    (job,) = [job for job in world.jobs.all() if job.labels["trainmaster_run_id"] == first.run_id]
    assert job.state is JobState.CANCELLED


PUSHED = {"new_image": {"repository": IMAGE, "tag": "*"}}
BY_IMAGE = {**SMALL, "image": "${image.uri}"}


def test_replace_ends_no_run_for_one_that_is_rejected(world: RuleWorld) -> None:
    """The request is checked, and counted towards the caps, before the run to be replaced is cancelled."""
    world.drop_rule(
        rule(PUSHED, request={**BY_IMAGE, "labels": {"tag": "${image.tag}"}}, while_running="replace")
    )
    for digit, tag in (("a", "v1"), ("b", "V-2"), ("c", "v3")):  # a label has no capital letter
        world.wait(1)
        world.signal(world.pushed(digit, tag))
        if tag == "V-2":
            assert world.state().current_run == world.records()[0].run_id
            assert [job.state is JobState.CANCELLED for job in world.jobs.all()] == [False]
    first, rejected, third = world.records()
    assert rejected.state is RunState.REJECTED
    assert [record.cancel_requested_at is None for record in (first, third)] == [False, True]
    assert [job.state is JobState.CANCELLED for job in world.jobs.all()] == [True, False]


def test_replace_ends_no_run_for_one_that_a_cap_rejects() -> None:
    world = RuleWorld(request_rules_with(admission=Admission(caps=Caps(runs_per_hour=1))))
    world.drop_rule(rule(MANUAL, while_running="replace"))
    for number in "12":
        world.wait(1)
        world.order({"fire": {"rule": "cassava"}}, number)
    first, rejected = world.records()
    assert (first.cancel_requested_at, rejected.state) == (None, RunState.REJECTED)
    assert world.state().current_run == first.run_id


@pytest.mark.parametrize("tag", ["v1", "stable"])
def test_replace_ends_no_run_for_the_image_that_it_trains(world: RuleWorld, tag: str) -> None:
    world.drop_rule(rule(PUSHED, request=BY_IMAGE, while_running="replace"))
    for pushed in ("v1", tag):
        world.wait(1)
        world.signal(world.pushed("a", pushed))
    (record,) = world.records()
    assert record.cancel_requested_at is None


def test_eight_ticks_at_once_start_one_run_and_lose_nothing(world: RuleWorld) -> None:
    world.drop_rule(rule())
    world.arrive(40)
    world.wait(61)
    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            results = [each for ticked in pool.map(lambda _: world.tick(), range(8)) for each in ticked]
        assert {each.severity for each in results} <= {"INFO", "DEBUG"}
    (record,) = world.records()
    assert present(record.request).document["args"] == ["--seen=40"]
    assert len(world.jobs.all()) == 1
    assert world.batches() == []


def test_the_same_signal_eight_times_at_once_fires_once(world: RuleWorld) -> None:
    world.drop_rule(rule({"alert": {"policy": "drift"}}, request=SMALL, while_running="replace"))
    alert = world.alerted("1", "drift")

    def deliver(_: int) -> None:
        world.signal(alert)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(deliver, range(8)))
    assert len(world.records()) == len(world.jobs.all()) == 1


def test_a_signal_is_redelivered_for_a_rule_that_could_not_decide(world: RuleWorld) -> None:
    heard = {"alert": {"policy": "drift"}}
    for rule_id in ("a", "b", "c"):
        world.drop_rule(rule(heard, request={**SMALL, "model_name": rule_id}), f"rules/{rule_id}.json")
    sound = world.objects.read(LEDGER, "rule-state/b.json", max_bytes=MIB).content
    world.objects.write(LEDGER, "rule-state/b.json", b"{}", if_generation=None)
    alert = world.alerted("1", "drift")
    with pytest.raises(DocumentDamaged, match=r"rule-state/b\.json"):
        world.signal(alert)
    assert {record.source.rule_id for record in world.records()} == {"a", "c"}
    world.objects.write(LEDGER, "rule-state/b.json", sound, if_generation=None)
    world.signal(alert)
    assert sorted(str(record.source.rule_id) for record in world.records()) == ["a", "b", "c"]


def test_a_storm_puts_the_rule_into_quarantine_until_it_is_dropped_again(world: RuleWorld) -> None:
    stormy = rule({"alert": {"policy": "*"}}, request=SMALL, while_running="replace", max_per_day=1000)
    world.drop_rule(stormy)
    for number in range(70):
        world.wait(10)
        world.signal(world.alerted(str(number), "drift"))
    assert len(world.records()) == 60
    status = world.rule_status()
    assert (status["state"], status["firings"]) == ("quarantined", 60)
    assert "more than 60 firings within an hour" in status["reason"]
    (notice,) = [each for each in world.notices.published if each.type == "trainmaster.rule.quarantined.v1"]
    assert (notice.subject, notice.data["firings"]) == ("cassava", 60)
    world.wait(10)
    world.drop_rule(stormy)
    assert world.rule_status()["state"] == "accepted"
    world.signal(world.alerted("after", "drift"))
    assert len(world.records()) == 61


@pytest.mark.parametrize("after_the_call", [False, True])
def test_a_storm_is_stopped_and_reported_wherever_the_process_crashes(*, after_the_call: bool) -> None:
    crashes = 0
    for call in itertools.count():
        world = RuleWorld()
        world.drop_rule(rule({"alert": {"policy": "*"}}, request=SMALL, max_per_day=1000))
        states = world.services().rule_states
        held = states.read("cassava")
        assert held.document is not None
        world.wait(60)
        states.replace(held, replace(held.document, number=60, fired_at=(world.clock.now(),) * 60))
        alert = world.alerted("61", "drift")
        try:
            world.signal(alert, Boundary(die_at=call, die_after_the_call=after_the_call))
        except Killed:
            crashes += 1
            world.signal(alert)
        assert world.rule_status()["state"] == "quarantined"
        assert {notice.id.rpartition("/")[2] for notice in world.notices.published} == {"quarantined"}
        assert world.records() == []
        if crashes == call:
            break
    assert crashes > 5
