"""Champions through the whole flow: promoted once, announced at least once, rolled back."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.boundaries import At, only_at, raising
from tests.contract.index import index_rows
from tests.contract.schemas import CHAMPION, NOTICE
from tests.contract.world import CHAMPIONS, LEDGER, Boundary, Killed, World
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.errors import DocumentDamaged
from trainmaster.orchestrator.core.notices.notice import cloud_event
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take
from trainmaster.orchestrator.flows.services import FlowResult
from trainmaster.orchestrator.stores.champions import Champions

SOURCE = "//trainmaster/projects/my-project/locations/us-central1"
IMAGE = "us-central1-docker.pkg.dev/my-project/trainmaster/trainer@sha256:" + "b" * 64
REQUEST: dict[str, Any] = {
    "model_name": "cassava-resnet50",
    "image": IMAGE,
    "cluster": {"chief": {"machine": "n1-standard-8"}},
    "champion": {"metric": "accuracy", "goal": "maximize", "margin": 0.01},
}


def trained(world: World, name: str, accuracy: float) -> IncomingDocument:
    """A run whose job has succeeded; its end is not reported yet."""
    incoming = world.drop_and_launch(json.dumps(REQUEST).encode(), f"requests/{name}.json")
    world.train(world.record(incoming.run_id), accuracy)
    return incoming


def complete(world: World, incoming: IncomingDocument, boundary: Boundary | None = None) -> FlowResult:
    job = present(world.record(incoming.run_id).job)
    return world.complete(world.hint(world.jobs.read(job.name)), boundary)


def run(world: World, name: str, accuracy: float) -> str:
    incoming = trained(world, name, accuracy)
    complete(world, incoming)
    return incoming.run_id


def champion(world: World) -> dict[str, Any]:
    found = world.document("champions/cassava-resnet50.json")
    CHAMPION.validate(found)
    return found


def told(world: World, kind: str) -> list[str]:
    """The ids of the notices of this kind; each fits its schema."""
    for notice in world.notices.published:
        NOTICE.validate(cloud_event(notice, SOURCE))
    return [notice.id for notice in world.notices.published if f".{kind}." in notice.type]


def order(
    world: World, document: object, name: str = "requests/order.json"
) -> tuple[IncomingDocument, FlowResult]:
    incoming = world.drop(json.dumps(document).encode(), name)
    return incoming, take(world.services(), incoming)


def verdict(world: World, run_id: str) -> Any:
    return world.document(f"runs/{run_id}.json")["completion"].get("champion")


def test_a_better_run_is_promoted_and_its_record_has_the_verdict_with_the_champion_before() -> None:
    world = World()
    first, second = run(world, "a", 0.7), run(world, "b", 0.8)
    worse, equal, close = run(world, "c", 0.6), run(world, "d", 0.8), run(world, "e", 0.805)
    found = champion(world)
    assert found["current"]["run_id"] == second
    assert [reign["run_id"] for reign in found["history"]] == [first, second]
    considered = [(each["run_id"], each["promoted"]) for each in found["considered"]]
    assert considered == [(first, True), (second, True), (worse, False), (equal, False), (close, False)]
    assert told(world, "promoted") == ["champions/cassava-resnet50/1", "champions/cassava-resnet50/2"]
    assert verdict(world, first) == {"promoted": True, "reason": "the first, with accuracy 0.7"}
    beats = {"promoted": True, "reason": "accuracy 0.8 beats 0.7", "compared_with": first}
    assert verdict(world, second) == beats
    assert verdict(world, worse) == {
        "promoted": False,
        "reason": "accuracy 0.6 is not better by 0.01 than the champion's 0.8",
        "compared_with": second,
    }


@pytest.mark.parametrize(("accuracy", "promoted"), [(0.8, True), (0.6, False)])
def test_a_verdict_lost_in_a_crash_is_recorded_by_the_next_attempt(accuracy: float, promoted: bool) -> None:
    """The crash is before the write that records the finished steps; another run becomes champion meanwhile."""
    world = World()
    first, incoming = run(world, "a", 0.7), trained(world, "b", accuracy)
    with pytest.raises(Killed):
        complete(world, incoming, At("write runs", before=only_at(2, raising(Killed("after the verdict")))))
    assert verdict(world, incoming.run_id) is None
    assert champion(world)["considered"][-1]["run_id"] == incoming.run_id
    world.clock.advance(timedelta(minutes=10))
    run(world, "c", 0.9)
    world.reconcile()
    found = verdict(world, incoming.run_id)
    assert (found["promoted"], found["compared_with"]) == (promoted, first)
    complete(world, incoming)
    assert verdict(world, incoming.run_id) == found
    assert [each["run_id"] for each in champion(world)["considered"]].count(incoming.run_id) == 1


def test_a_champion_that_changes_while_a_run_is_compared_is_compared_again(world: World) -> None:
    run(world, "a", 0.5)
    slow, fast = trained(world, "slow", 0.7), trained(world, "fast", 0.9)
    complete(world, slow, At("write champions", before=only_at(1, lambda: complete(world, fast))))
    found = champion(world)
    assert found["current"]["run_id"] == fast.run_id
    assert [each["run_id"] for each in found["considered"]][1:] == [fast.run_id, slow.run_id]
    assert found["considered"][-1]["promoted"] is False


def test_one_order_rolls_back_and_its_repetition_changes_nothing(world: World) -> None:
    first, second = run(world, "a", 0.7), run(world, "b", 0.8)
    incoming, result = order(world, {"rollback": {"model_name": "cassava-resnet50"}})
    assert first in result.message
    take(world.services(), incoming)
    found = champion(world)
    assert [reign["run_id"] for reign in found["history"]] == [first, second, first]
    assert found["current"]["cause"] == "rollback"
    assert set(told(world, "rolled_back")) == {"champions/cassava-resnet50/3"}
    status = world.document("status/requests/order.json.json")
    assert (status["state"], status["model_uri"]) == ("succeeded", found["current"]["model_uri"])
    assert status["record_uri"] == f"gs://{LEDGER}/champions/cassava-resnet50.json"


def test_an_impossible_rollback_is_refused_and_is_no_run(world: World) -> None:
    run(world, "a", 0.7)
    before = champion(world)
    incoming, _ = order(world, {"rollback": {"model_name": "cassava-resnet50", "to_run": "run-x"}})
    report = world.document(f"rejected/{incoming.run_id}.json")
    (fault,) = report["faults"]
    assert (fault["path"], fault["allowed"]) == ("$.rollback.to_run", "none")
    unknown, _ = order(world, {"rollback": {"model_name": "nobody"}}, "requests/other.json")
    (fault,) = world.document(f"rejected/{unknown.run_id}.json")["faults"]
    assert (fault["path"], fault["problem"]) == ("$.rollback.model_name", "no champion has this model name")
    assert world.record(incoming.run_id).state is RunState.REJECTED
    assert champion(world) == before
    world.reconcile()
    take(world.services(), incoming)
    assert incoming.run_id not in {row.run_id for row in index_rows(world.objects)}


def test_a_rollback_to_a_champion_whose_copy_was_deleted_is_refused(world: World) -> None:
    first, second = run(world, "a", 0.7), run(world, "b", 0.8)
    for each in list(world.objects.listing(CHAMPIONS, f"cassava-resnet50/{first}/")):
        world.objects.delete(CHAMPIONS, each.name)
    incoming, _ = order(world, {"rollback": {"model_name": "cassava-resnet50"}})
    (fault,) = world.document(f"rejected/{incoming.run_id}.json")["faults"]
    assert fault["path"] == "$.rollback.model_name"
    assert f"the copy of its model no longer exists: gs://{CHAMPIONS}/" in fault["problem"]
    assert champion(world)["current"]["run_id"] == second


def test_a_damaged_champion_is_named_and_nothing_is_written_over_it(world: World) -> None:
    world.objects.write(LEDGER, "champions/cassava-resnet50.json", b"{}", if_generation=None)
    incoming = trained(world, "a", 0.7)
    assert "champions/cassava-resnet50.json" in complete(world, incoming).message
    assert world.record(incoming.run_id).state is RunState.SUCCEEDED
    assert world.active() == [incoming.run_id]
    with pytest.raises(DocumentDamaged):
        Champions(world.objects, LEDGER).find("cassava-resnet50")


def started_from(world: World, *words: str, name: str = "next", **more: object) -> dict[str, Any]:
    """The record of a request whose arguments are these."""
    content = json.dumps({**REQUEST, "args": ["--epochs=2", *words], **more}).encode()
    return world.document(f"runs/{world.drop_and_launch(content, f'requests/{name}.json').run_id}.json")


def test_a_run_starts_from_the_champion_of_its_acceptance_in_all_fallbacks_and_attempts(world: World) -> None:
    first = run(world, "a", 0.7)
    spot = {"scheduling": {"spot": True}}
    records = [
        started_from(world, *words, name=f"next-{number}", fallbacks=[spot])
        for number, words in enumerate([("--start_from=champion",), ("--start-from", "champion", "--last")])
    ]
    uri = f"--start_from=gs://{CHAMPIONS}/cassava-resnet50/{first}/"
    assert [record["request"]["document"]["args"][1:] for record in records] == [[uri], [uri, "--last"]]
    run(world, "b", 0.9)
    for candidate in candidates_of(world.record(records[0]["run_id"])):
        assert candidate.spec.cluster.chief.program.args == ("--epochs=2", uri)


def test_without_a_champion_a_run_starts_as_built_and_its_record_says_so() -> None:
    record = started_from(World(), "--start_from=champion")
    assert record["request"]["document"]["args"] == ["--epochs=2"]
    (problem,) = record["problems"]
    assert "cassava-resnet50 has no champion yet, so the run starts from the model as built" in problem


def test_a_run_starts_from_the_recorded_model_of_another_run_and_values_of_the_program_stay() -> None:
    world = World()
    first = run(world, "a", 0.7)
    record = started_from(world, f"--start_from={first}", "--start_from=/gcs/b/model")
    uri = present(world.record(first).model).uri
    assert record["request"]["document"]["args"][1:] == [f"--start_from={uri}", "--start_from=/gcs/b/model"]


def test_a_start_from_an_unknown_run_or_one_without_a_model_is_rejected_with_the_repair(world: World) -> None:
    waiting = trained(world, "a", 0.7).run_id
    for run_id in ("nothing-20260101t000000-0123456789", waiting):
        record = started_from(world, f"--start_from={run_id}", name=f"of-{run_id}")
        (fault,) = world.document(f"rejected/{record['run_id']}.json")["faults"]
        assert (fault["path"], fault["found"].strip("'")) == ("$.args[1]", run_id)
        assert fault["problem"] == "there is no run with this id that has left a model"
        assert "write --start_from=champion" in fault["repair"]
