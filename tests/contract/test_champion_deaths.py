"""A challenge and a rollback survive a death at any call, in any order of the runs that end."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pytest
from jsonschema import Draft202012Validator

from orchestrator.adapters.memory import MemoryNotices
from orchestrator.adapters.pubsub import cloud_event
from orchestrator.core.errors import ServiceFailed
from orchestrator.core.launch.event import Arrival
from orchestrator.core.run import Job, RunState
from orchestrator.flow.launch import launch
from orchestrator.flow.orders import take_order
from orchestrator.ports import Notice
from tests.contract.world import MODELS, REQUEST, Boundary, Killed, World, export_manifest, schema

_Answer = TypeVar("_Answer")

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
        NOTICE.validate(cloud_event(notice, "//trainmaster/projects/project-1/locations/us-central1"))
    return [notice.id for notice in world.notices.published]


def runs_of(document: Mapping[str, Sequence[Mapping[str, str]]], key: str) -> list[str]:
    return [entry["run_id"] for entry in document[key]]


def calls_of_an_end() -> list[str]:
    world, boundary = World(), Boundary()
    ended(world, 1, 0.7)
    _, job = trained(world, 2, 0.8)
    world.settle(world.hint(job), boundary)
    return boundary.calls


CALLS = calls_of_an_end()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", range(len(CALLS)), ids=lambda number: f"{number} {CALLS[number]}")
@pytest.mark.parametrize("by", ["redelivery", "sweep"])
def test_a_promotion_survives_a_death_at_any_call(by: str, point: int, *, after: bool) -> None:
    world = World()
    first = ended(world, 1, 0.7)
    arrival, job = trained(world, 2, 0.8)
    with pytest.raises(Killed):
        world.settle(world.hint(job), Boundary(die_at=point, die_after_the_call=after))
    if by == "redelivery":
        world.settle(world.hint(job))
    world.sweep()
    document = world.document(CHAMPION)
    DOCUMENT.validate(document)
    assert runs_of(document, "history") == [first, arrival.run_id]
    assert runs_of(document, "considered") == [first, arrival.run_id]
    wanted = {f"{arrival.run_id}/{state}" for state in ("reserved", "submitted", "running", "succeeded")}
    assert wanted | {f"champions/{NAME}/1", f"champions/{NAME}/2"} <= set(told(world))
    assert world.active() == []


class EndsMeanwhile(Boundary):
    """Just before this delivery writes the champion, another run's end is told and carried through."""

    def __init__(self, world: World, job: Job) -> None:
        super().__init__()
        self._world, self._job, self.met = world, job, False

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        if name == "write champions" and not self.met:
            self.met = True
            self._world.settle(self._world.hint(self._job))
        return super().cross(name, call)


@pytest.mark.parametrize("order", [(0.8, 0.9), (0.9, 0.8)], ids=str)
def test_the_better_of_two_runs_that_end_at_once_is_the_champion(order: tuple[float, float]) -> None:
    world = World()
    first = ended(world, 1, 0.7)
    outer, outer_job = trained(world, 2, order[0])
    inner, inner_job = trained(world, 3, order[1])
    boundary = EndsMeanwhile(world, inner_job)
    world.settle(world.hint(outer_job), boundary)
    assert boundary.met
    document = world.document(CHAMPION)
    assert document["current"]["value"] == 0.9
    assert runs_of(document, "considered") == [first, inner.run_id, outer.run_id]
    assert [reign["number"] for reign in document["history"]] == list(range(1, len(document["history"]) + 1))
    assert Counter(told(world))[f"champions/{NAME}/2"] == 1
    world.sweep()
    assert world.document(CHAMPION) == document


def rolled_back(world: World, arrival: Arrival, boundary: Boundary | None = None) -> None:
    launch(world.services(boundary), arrival, take_order)


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
    with pytest.raises(ServiceFailed):
        world.settle(world.hint(job))
    assert world.record(arrival.run_id).state is RunState.SUCCEEDED
    assert world.document("status/requests/1.yaml.json")["state"] == "succeeded"
    assert world.document(CHAMPION)["current"]["run_id"] == arrival.run_id
    world.notices = reachable
    world.sweep()
    assert {f"champions/{NAME}/1", f"{arrival.run_id}/running", f"{arrival.run_id}/succeeded"} <= set(
        told(world)
    )
    assert world.active() == []
