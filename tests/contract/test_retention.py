"""The policy's retention: what is over goes, what a champion needs stays, and no death of a tick leaves half of a run."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.index import index_rows
from tests.contract.retraining import MANUAL, SMALL, RuleWorld
from tests.contract.schemas import RECORD
from tests.contract.test_champions import REQUEST, complete
from tests.contract.world import INBOX, LEDGER, MODELS, Boundary, Killed, World, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.policy.retention import Keep, Retention
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.retention.cleaning import Round, decide
from trainmaster.orchestrator.core.runs.end import (
    ChampionVerdict,
    Completion,
    Registration,
    RegistrationState,
)
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take
from trainmaster.orchestrator.flows.retention import clean
from trainmaster.orchestrator.flows.scheduled import take_tick

MONTH = Keep(older_than_days=30)
ALL = {"runs": MONTH, "checkpoints": Keep(older_than_days=7), "models": MONTH}
OLD = timedelta(days=40)


def a_world(retention: Retention = ALL) -> World:
    return World(request_rules_with(admission=Admission(), retention=retention))


def started(world: World, name: str, *args: str, **changes: Any) -> IncomingDocument:
    """A run with a checkpoint and a log in its directory."""
    chief = {"machine": "n1-standard-8", **({"args": list(args)} if args else {})}
    document = {**REQUEST, "cluster": {"chief": chief}, **changes}
    document = {key: value for key, value in document.items() if value is not None}
    incoming = world.drop_and_launch(json.dumps(document).encode(), f"requests/{name}.json")
    for file in ("checkpoints/ckpt-1", "logs/events"):
        world.objects.write(MODELS, f"{directory(world, incoming.run_id)}{file}", b"1234", if_generation=None)
    return incoming


def trained(world: World, name: str, accuracy: float, *args: str, **changes: Any) -> IncomingDocument:
    incoming = started(world, name, *args, **changes)
    world.train(world.record(incoming.run_id), accuracy)
    complete(world, incoming)
    world.reconcile()
    return incoming


def directory(world: World, run_id: str) -> str:
    return present(world.record(run_id).output_uri).removeprefix(f"gs://{MODELS}/") + "/"


def wrote(world: World, run_id: str) -> list[str]:
    """What the bucket has of the run, without the folder."""
    listed = world.objects.listing(MODELS, "")
    return [entry.name.partition(f"/{run_id}/")[2] for entry in listed if f"/{run_id}/" in entry.name]


def cleaned(world: World, boundary: Boundary | None = None) -> list[str]:
    return [result.message for result in clean(world.services(boundary))]


def state_of(world: World) -> Mapping[str, object]:
    """Everything in the buckets but who wrote it when."""
    found = {}
    for bucket in (LEDGER, MODELS):
        for entry in world.objects.listing(bucket, ""):
            content = world.objects.read(bucket, entry.name, max_bytes=10**7).content
            document = json.loads(content) if entry.name.startswith("runs/") else entry.size_bytes
            if isinstance(document, dict):
                RECORD.validate(document)
                document = {
                    key: value for key, value in document.items() if key not in ("attempt", "updated_at")
                }
                document["cleaned"] = sorted(document.get("cleaned", {}))
                document.get("model", {}).pop("deleted_at", None)
            if entry.name != "retention.json":
                found[f"{bucket}/{entry.name}"] = document
    return found


def full_world() -> tuple[World, dict[str, IncomingDocument]]:
    """Two champions, of which the second started from the first of two bases; and a loser, a failure and a rejection."""
    world = a_world()
    base = trained(world, "base", 0.1, model_name="base", champion=None)
    others = {"base": base, "other base": trained(world, "base2", 0.1, model_name="base", champion=None)}
    first = trained(world, "first", 0.7)
    best = trained(world, "best", 0.9, f"--start_from={base.run_id}")
    loser = trained(world, "loser", 0.2, f"--start_from={others['other base'].run_id}")
    failed = started(world, "failed")
    world.jobs.become(present(world.record(failed.run_id).job).name, JobState.RUNNING)
    world.jobs.become(present(world.record(failed.run_id).job).name, JobState.FAILED)
    rejected = world.drop_and_launch(b"model_name: 1", "requests/rejected.yaml")
    world.reconcile_after(timedelta(minutes=10))
    world.reconcile_after(timedelta(hours=1))
    assert cleaned(world) == []
    world.clock.advance(OLD)
    trained(world, "newest", 0.3)
    return world, {
        **others,
        "first": first,
        "best": best,
        "loser": loser,
        "failed": failed,
        "rejected": rejected,
    }


def test_what_lost_goes_and_champions_stay_with_all_that_they_came_from() -> None:
    world, runs = full_world()
    assert cleaned(world) == ["the policy's retention removed parts of 4 runs"]
    ids = {name: incoming.run_id for name, incoming in runs.items()}
    gone = {name for name, run_id in ids.items() if not wrote(world, run_id)}
    assert gone == {"loser", "failed", "rejected"}
    assert "checkpoints/ckpt-1" not in wrote(world, ids["other base"])
    for name in ("base", "first", "best"):
        assert "checkpoints/ckpt-1" in wrote(world, ids[name]), name
        assert world.record(ids[name]).cleaned is None
    (newest,) = {row.run_id for row in index_rows(world.objects)} - set(ids.values())
    rows = {row.run_id for row in index_rows(world.objects)}
    assert rows == {ids["base"], ids["other base"], ids["first"], ids["best"], newest}
    assert present(world.record(ids["loser"]).cleaned).keys() == {"checkpoints", "models", "runs"}
    assert not [entry.name for entry in world.objects.listing(LEDGER, f"submitted/{ids['loser']}")]
    assert not [entry.name for entry in world.objects.listing(LEDGER, "rejected/")]
    state_of(world)  # every record fits its schema


def test_a_record_whose_model_was_removed_says_so_and_no_run_starts_from_it() -> None:
    world = a_world({"models": MONTH})
    old, new = trained(world, "old", 0.2, champion=None), trained(world, "new", 0.9, champion=None)
    world.clock.advance(OLD)
    cleaned(world)
    model = present(world.record(old.run_id).model)
    assert model.deleted_at == world.clock.now()
    assert present(world.record(new.run_id).model).deleted_at is None
    again = started_refused(world, f"--start_from={old.run_id}")
    assert any("no run with this id that has left a model" in problem for problem in again)


def started_refused(world: World, *args: str) -> tuple[str, ...]:
    document = {**REQUEST, "cluster": {"chief": {"machine": "n1-standard-8", "args": list(args)}}}
    incoming = world.drop_and_launch(json.dumps(document).encode(), "requests/again.json")
    record = world.record(incoming.run_id)
    assert record.state is RunState.REJECTED
    return record.problems


@pytest.mark.parametrize("source", ["upload", "message", "key"])
def test_a_late_delivery_of_a_removed_runs_event_submits_nothing(source: str) -> None:
    world = a_world()
    content = json.dumps({key: REQUEST[key] for key in ("model_name", "image", "cluster")}).encode()
    if source == "upload":
        incoming = world.drop(content, "requests/a.json")
    else:
        attributes = {"idempotency_key": "once"} if source == "key" else {}
        incoming = world.published(message(content, attributes))
    world.launch(incoming)
    world.train(world.record(incoming.run_id))
    complete(world, incoming)
    world.reconcile()
    trained(world, "newer", 0.1, champion=None)
    world.clock.advance(OLD)
    cleaned(world)
    assert "runs" in present(world.record(incoming.run_id).cleaned)
    jobs, before = len(world.jobs.all()), world.record(incoming.run_id)
    world.launch(incoming)
    world.complete(world.hint(world.jobs.read(present(before.job).name)))
    world.reconcile()
    assert len(world.jobs.all()) == jobs
    assert (world.record(incoming.run_id), world.active()) == (before, [])
    assert index_rows(world.objects)[-1].run_id != incoming.run_id


def message(content: bytes, attributes: Mapping[str, str]) -> Mapping[str, object]:
    import base64

    data = base64.b64encode(content).decode()
    return {"messageId": "1", "publishTime": "2026-03-01T12:00:00Z", "data": data, "attributes": attributes}


def test_a_damaged_record_is_passed_over_and_named() -> None:
    world, runs = full_world()
    whole = world.copied()
    cleaned(whole)
    run_id = runs["failed"].run_id
    world.objects.write(LEDGER, f"runs/{run_id}.json", b"{", if_generation=None)
    said = cleaned(world)
    assert [
        message
        for message in said
        if f"gs://{LEDGER}/runs/{run_id}.json is not a valid run record" in message
    ]
    assert "the policy's retention removed parts of" in said[-1]
    wanted = {name: found for name, found in state_of(whole).items() if run_id not in name}
    left = {name: found for name, found in ledger_names(world).items() if run_id not in name}
    assert left.keys() == {name for name in wanted if name.startswith(LEDGER)}


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_run_with_a_damaged_record_started_from_stays_if_it_is_new_or_must_stay(is_new: bool) -> None:
    world = a_world({"models": MONTH})
    base = trained(world, "base", 0.2, champion=None)
    world.clock.advance(OLD)
    later = trained(world, "later", 0.9, f"--start_from={base.run_id}")
    trained(world, "newest", 0.3, champion=None)
    if not is_new:
        world.clock.advance(OLD)
    world.objects.write(LEDGER, f"runs/{later.run_id}.json", b"{", if_generation=None)
    (said,) = cleaned(world)
    assert "the policy's retention stopped here" in said
    assert wrote(world, base.run_id)


def ledger_names(world: World) -> Mapping[str, int]:
    return {
        f"{LEDGER}/{entry.name}": entry.size_bytes
        for entry in world.objects.listing(LEDGER, "")
        if entry.name != "retention.json"
    }


def test_a_tick_that_dies_or_fails_between_any_two_calls_is_continued() -> None:
    before, runs = full_world()
    world, boundary = before.copied(), Boundary()
    cleaned(world, boundary)
    wanted = state_of(world)
    changing = [n for n, call in enumerate(boundary.calls) if call.startswith(("write", "delete"))]
    assert len(changing) > 20
    for point, after in itertools.product(changing, (False, True)):
        again = before.copied()
        with pytest.raises(Killed):
            cleaned(again, Boundary(die_at=point, die_after_the_call=after))
        for incoming in runs.values():  # each record can be read, and starts nothing again
            again.launch(incoming)
            model = again.record(incoming.run_id).model
            if model is not None and "saved_model.pb" not in " ".join(wrote(again, incoming.run_id)):
                assert model.deleted_at is not None
        cleaned(again)
        again.reconcile()
        found = state_of(again)
        assert {name: found.get(name) for name in wanted} == wanted, (boundary.calls[point], after)
        assert len(again.jobs.all()) == len(world.jobs.all())


def test_large_directories_take_several_ticks() -> None:
    world = a_world({"models": MONTH})
    old = trained(world, "old", 0.2, champion=None)
    trained(world, "new", 0.9, champion=None)
    for number in range(30):
        name = f"{directory(world, old.run_id)}logs/{number}"
        world.objects.write(MODELS, name, b"1", if_generation=None)
    world.clock.advance(OLD)
    slow, left = Slow(world, "delete", 1), list[int]()
    while wrote(world, old.run_id):
        list(clean(world.services(slow)))
        left.append(len(wrote(world, old.run_id)))
    assert left == [14, 0]


class Slow(Boundary):
    """Each call whose name begins so takes that many seconds."""

    def __init__(self, world: World, name: str, seconds: float) -> None:
        super().__init__()
        self.world, self.name, self.pause = world, name, timedelta(seconds=seconds)

    def cross(self, name: str, call: Any) -> Any:
        if name.startswith(self.name):
            self.world.clock.advance(self.pause)
        return super().cross(name, call)


def test_a_round_is_made_once_a_day_or_when_ordered_and_costs_one_read_otherwise() -> None:
    world = a_world()
    old = trained(world, "old", 0.2, champion=None)
    trained(world, "new", 0.9, champion=None)
    cleaned(world)
    boundary = Boundary()
    world.clock.advance(timedelta(hours=23))
    cleaned(world, boundary)
    assert boundary.calls == [f"read {LEDGER}"]
    without = Boundary()
    list(clean(a_world({}).services(without)))
    assert without.calls == []
    world.clock.advance(OLD)
    cleaned(world)
    assert "runs" in present(world.record(old.run_id).cleaned)
    trained(world, "third", 0.9, champion=None)
    world.request_rules = request_rules_with(admission=Admission(), retention={"models": Keep(keep_last=1)})
    cleaned(world)
    order = world.drop(b"clean: {}", "requests/order.yaml")
    assert take(world.services(), order).message == "the retention begins with the next tick"
    assert any("removed parts" in message for message in cleaned(world))


def test_an_order_without_retention_is_refused() -> None:
    world = a_world({})
    incoming = world.drop(b"clean: {}", "requests/order.yaml")
    take(world.services(), incoming)
    assert "no retention" in world.record(incoming.run_id).problems[0]


def test_a_run_that_starts_while_a_round_is_under_way_keeps_what_it_starts_from() -> None:
    world = a_world({"models": MONTH, "checkpoints": MONTH})
    old = trained(world, "old", 0.2, champion=None)
    trained(world, "new", 0.9, champion=None)
    world.clock.advance(OLD)
    with pytest.raises(Killed):  # the round has decided, and removed nothing yet
        cleaned(world, Boundary(die_at=8, die_after_the_call=True))
    uri = f"{world.record(old.run_id).output_uri}/checkpoints/"
    started(world, "continues", continue_from=uri, champion=None)
    cleaned(world)
    assert "checkpoints/ckpt-1" in wrote(world, old.run_id)


def test_a_run_that_becomes_champion_while_a_round_is_under_way_stays() -> None:
    world = a_world({"models": Keep(keep_last=1)})
    late = started(world, "late")
    world.train(world.record(late.run_id), 0.9)
    for name in ("a", "b"):
        trained(world, name, 0.1, champion=None)
    list(clean(world.services(Slow(world, "read", 21))))  # decides on the newest run alone
    complete(world, late)
    world.reconcile()
    for _ in range(4):
        cleaned(world)
    assert "model/saved_model.pb" in wrote(world, late.run_id)


def test_what_is_active_or_has_steps_left_stays_and_the_tick_does_it_last() -> None:
    world = a_world()
    running = started(world, "running")
    ended = trained(world, "ended", 0.1, champion=None)
    trained(world, "newer", 0.1, champion=None)
    world.ledger.mark_active(ended.run_id)
    world.clock.advance(OLD)
    cleaned(world)
    assert world.record(running.run_id).cleaned is None
    assert world.record(ended.run_id).cleaned is None
    world.clock.advance(timedelta(days=1, minutes=1))
    list(take_tick(world.services()))
    assert "runs" in present(world.record(ended.run_id).cleaned)


@pytest.mark.parametrize(("keep", "left"), [(1, ["4"]), (3, ["2", "3", "4"])])
def test_the_last_of_each_model_stay(keep: int, left: list[str]) -> None:
    world = a_world({"models": Keep(keep_last=keep)})
    runs = {str(n): trained(world, str(n), 0.1, champion=None) for n in range(5)}
    trained(world, "another", 0.1, model_name="another", champion=None)
    world.clock.advance(timedelta(hours=2))
    cleaned(world)
    assert [name for name, incoming in runs.items() if wrote(world, incoming.run_id)] == left


@pytest.mark.parametrize("is_template", [False, True])
def test_what_the_request_of_a_rule_names_stays(is_template: bool) -> None:
    world = RuleWorld(request_rules_with(admission=Admission(), retention={"models": MONTH}))
    named, lost = (trained(world, name, 0.1, champion=None) for name in ("named", "lost"))
    trained(world, "newest", 0.1, champion=None)
    request = {**SMALL, "args": [f"--start_from={named.run_id}"]}
    how: dict[str, Any] = {"request": request}
    if is_template:
        world.objects.write(INBOX, "templates/t.json", json.dumps(request).encode(), if_generation=None)
        how = {"request_uri": f"gs://{INBOX}/templates/t.json"}
    world.drop_rule({"when": [MANUAL], **how})
    world.clock.advance(OLD)
    cleaned(world)
    assert [bool(wrote(world, incoming.run_id)) for incoming in (named, lost)] == [True, False]


def test_a_model_that_waits_for_approval_or_is_registered_stays() -> None:
    world = a_world()
    old = trained(world, "old", 0.1, champion=None)
    trained(world, "new", 0.1, champion=None)
    record, now = world.record(old.run_id), world.clock.now() + OLD
    row = next(row for row in index_rows(world.objects) if row.run_id == old.run_id)
    waiting = ChampionVerdict(promoted=False, reason="", approve_by=now + timedelta(hours=1))

    def stays(completion: Completion | None) -> set[str]:
        found = replace(record, completion=completion)
        of_round = Round(began_at=now, counts={"models cassava-resnet50": 1})
        return set(decide(of_round, row, found, ALL, active=(), bucket=MODELS, now=now).stays.values())

    assert stays(record.completion) == stays(Completion(champion=replace(waiting, approve_by=now))) == set()
    assert stays(Completion(champion=waiting)) == {"its promotion waits for approval"}
    failed = Registration(state=RegistrationState.FAILED)
    assert stays(Completion(registration=failed)) == set()
    assert stays(Completion(registration=replace(failed, version="1"))) == {
        "its model is in the Model Registry"
    }
