"""A champion goes back by one order, wherever the process dies; and nothing waits for a service of notices."""

import json
from collections.abc import Mapping, Sequence

import pytest
from jsonschema import Draft202012Validator

from tests.contract.world import MODELS, REQUEST, Boundary, Killed, World, export_manifest, schema
from trainmaster.orchestrator.adapters.memory import MemoryNotices
from trainmaster.orchestrator.adapters.pubsub import cloud_event
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take

NAME = "cassava-resnet50"
CHALLENGE = REQUEST + b"champion: {metric: accuracy, goal: maximize, margin: 0.01}\n"
CHAMPION = f"champions/{NAME}.json"
DOCUMENT = Draft202012Validator(schema("champion.v1"))
NOTICE = Draft202012Validator(schema("notice.v1"))


def trained(world: World, number: int, accuracy: float) -> tuple[Arrival, Job]:
    """A challenger whose job has ended and whose record does not say so yet."""
    arrival = world.drop(CHALLENGE, f"requests/{number}.yaml")
    world.launch(arrival)
    job = world.train(world.record(arrival.run_id), manifest=False)
    model_uri = f"{job.output_uri}/model/"
    manifest = export_manifest(model_uri) | {"metrics": {"accuracy": accuracy}}
    name = model_uri.removeprefix(f"gs://{MODELS}/") + "export.json"
    world.objects.write(MODELS, name, json.dumps(manifest).encode(), if_generation=None)
    return arrival, job


def ended(world: World, number: int, accuracy: float) -> str:
    arrival, job = trained(world, number, accuracy)
    world.settle(world.hint(job))
    return arrival.run_id


def told(world: World) -> list[str]:
    for notice in world.notices.published:
        NOTICE.validate(cloud_event(notice, "//trainmaster/projects/my-project/locations/us-central1"))
    return [notice.id for notice in world.notices.published]


def runs_of(document: Mapping[str, Sequence[Mapping[str, str]]], key: str) -> list[str]:
    return [entry["run_id"] for entry in document[key]]


def rolled_back(world: World, arrival: Arrival, boundary: Boundary | None = None) -> None:
    take(world.services(boundary), arrival)


def order_to_roll_back(world: World, **more: str) -> Arrival:
    order = {"rollback": {"model_name": NAME, **more}}
    return world.drop(json.dumps(order).encode(), "requests/back.json")


def calls_of_a_rollback() -> list[str]:
    world, boundary = World(), Boundary()
    ended(world, 1, 0.7)
    ended(world, 2, 0.8)
    rolled_back(world, order_to_roll_back(world), boundary)
    return boundary.calls


BACK = calls_of_a_rollback()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", range(len(BACK)), ids=lambda number: f"{number} {BACK[number]}")
def test_a_rollback_survives_a_death_at_any_call_and_happens_once(point: int, *, after: bool) -> None:
    world = World()
    first, second = ended(world, 1, 0.7), ended(world, 2, 0.8)
    arrival = order_to_roll_back(world)
    with pytest.raises(Killed):
        rolled_back(world, arrival, Boundary(die_at=point, die_after_the_call=after))
    rolled_back(world, arrival)
    document = world.document(CHAMPION)
    DOCUMENT.validate(document)
    assert runs_of(document, "history") == [first, second, first]
    assert document["current"]["cause"] == "rollback"
    assert f"champions/{NAME}/3" in told(world)


def test_rolling_back_twice_goes_back_two_champions() -> None:
    world = World()
    runs = [ended(world, number, 0.7 + number / 20) for number in range(3)]
    for _ in range(2):
        rolled_back(world, order_to_roll_back(world))
    assert world.document(CHAMPION)["current"]["run_id"] == runs[0]


@pytest.mark.parametrize(
    ("more", "problem"),
    [({}, "no other champion before"), ({"to_run": "never-seen"}, "never champion")],
)
def test_a_rollback_that_leads_nowhere_is_refused_with_a_report(more: dict[str, str], problem: str) -> None:
    world = World()
    ended(world, 1, 0.7)
    before = world.document(CHAMPION)
    arrival = order_to_roll_back(world, **more)
    rolled_back(world, arrival)
    status = world.document("status/requests/back.json.json")
    assert status["state"] == "rejected"
    assert problem in json.dumps(world.document(f"rejected/{arrival.run_id}.json"))
    assert world.document(CHAMPION) == before


class Unreachable(MemoryNotices):
    def publish(self, notice: Notice) -> None:
        raise ServiceFailed("Pub/Sub", f"publish {notice.id}", "unreachable")


def test_a_run_ends_on_record_while_nothing_can_be_published_and_all_is_told_later() -> None:
    world = World()
    arrival, job = trained(world, 1, 0.7)
    reachable, world.notices = world.notices, Unreachable()
    world.settle(world.hint(job))
    assert world.active() == [arrival.run_id]
    assert world.record(arrival.run_id).state is RunState.SUCCEEDED
    assert world.document("status/requests/1.yaml.json")["state"] == "succeeded"
    assert world.document(CHAMPION)["current"]["run_id"] == arrival.run_id
    world.notices = reachable
    world.sweep()
    assert {f"champions/{NAME}/1", f"{arrival.run_id}/running", f"{arrival.run_id}/succeeded"} <= set(
        told(world)
    )
    assert world.active() == []
