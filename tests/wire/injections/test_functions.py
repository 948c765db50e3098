"""Injections strike events on their way to a function, and kill its process: in a request it makes, or while it works."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from trainmaster.local.events.clients import clients_of
from trainmaster.local.events.cloudevent import CloudEvent
from trainmaster.local.events.injections import with_injections
from trainmaster.local.functions import Deployment, Function, FunctionsHost, Instance, TopicTrigger
from trainmaster.local.http import Server, in_thread
from trainmaster.local.injections import Injections, plan_from
from trainmaster.local.process import ProcessGuard
from trainmaster.local.pubsub import PubSub
from trainmaster.local.storage import Storage

from .conftest import PATH, account, ask, until

SOURCES = Path(__file__).parent / "sources"
TOPIC = "projects/p1/topics/topic-1"
SUBSCRIPTION = "projects/p1/subscriptions/sub-1"
SOURCE = "//storage.googleapis.com/projects/_/buckets/inbox"


def event(name: str = "requests/a b.yaml", event_id: str = "1", **data: str) -> CloudEvent:
    headers = {
        "ce-id": event_id,
        "ce-source": SOURCE,
        "ce-specversion": "1.0",
        "ce-subject": f"objects/{name.replace(' ', '%20')}",
        "ce-type": "google.cloud.storage.object.v1.finalized",
        "Content-Type": "application/json",
    }
    return CloudEvent(headers=headers, body=json.dumps({"name": name, **data}).encode())


class Told:
    """A function that remembers what it was told."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.kills = 0
        self.injections = Injections()
        self.before_answer: Callable[[], object] = lambda: None

    def invoke(self, given: CloudEvent) -> int:
        self.ids.append(given.headers["ce-id"])
        self.before_answer()
        return 204

    def kill(self) -> None:
        self.kills += 1

    def through(self, kind: str, **fields: object) -> Callable[[CloudEvent], int]:
        injection = {"name": "f1", "at": "functions.on-*", "kind": kind, **fields}
        self.injections.put(plan_from(injection))
        return with_injections("on-upload", self.invoke, kill=self.kill, injections=self.injections)


@pytest.mark.parametrize(
    ("kind", "status", "told", "kills"),
    [
        ("error_before", 503, 0, 0),
        ("error_after", 503, 1, 0),
        ("drop", 200, 0, 0),
        ("duplicate", 204, 2, 0),
        ("delay", 204, 1, 0),
        ("reorder", 204, 1, 0),
        ("kill", 502, 1, 1),
        ("kill_after", 502, 1, 1),
    ],
)
def test_what_each_kind_does_to_an_event(kind: str, status: int, told: int, kills: int) -> None:
    function = Told()
    assert function.through(kind, seconds=0.01, match="inbox/requests/a b.yaml")(event()) == status
    assert (len(function.ids), function.kills) == (told, kills)


def test_an_event_of_another_object_is_left_alone() -> None:
    function = Told()
    assert function.through("drop", match="inbox/rules/*")(event()) == 204


def test_a_delayed_event_arrives_when_its_time_is_over() -> None:
    function = Told()
    began = time.monotonic()
    function.through("delay", seconds=0.3)(event())
    assert time.monotonic() - began >= 0.3


def test_a_duplicate_is_brought_while_the_first_is_still_worked_on() -> None:
    function = Told()
    both = threading.Barrier(2)
    function.before_answer = lambda: both.wait(20)  # passes only when two are here at once
    assert function.through("duplicate")(event()) == 204


def test_a_reordered_event_arrives_behind_the_next() -> None:
    function = Told()
    invoke = function.through("reorder", seconds=60, times=1)
    first = threading.Thread(target=invoke, args=(event(event_id="1"),))
    first.start()
    until(lambda: function.injections.account("f1").struck == 1, "the first is held back")
    invoke(event(event_id="2"))
    first.join(30)
    assert function.ids == ["2", "1"]


@dataclass(frozen=True, kw_only=True)
class Running:
    """A function in a real process, a storage and a Pub/Sub server, and the injections of all."""

    instance: Instance
    url: str
    pubsub: str
    invoke: Callable[[CloudEvent], int]

    def objects(self) -> list[str]:
        found = httpx.get(f"{self.url}/storage/v1/b/inbox/o", timeout=60).json().get("items", [])
        return [one["name"] for one in found]

    def bring(self, given: CloudEvent) -> None:
        """Until it is taken: while the last of the killed processes dies, the port takes what nobody answers."""
        until(lambda: self.invoke(given) == 200, "the event is taken")

    def pulled(self, count: int) -> list[bytes]:
        """So many messages of the topic."""
        found: list[bytes] = []
        with clients_of(self.pubsub) as clients:
            while len(found) < count:
                answer = clients.subscriber.pull(subscription=SUBSCRIPTION, max_messages=count, timeout=60)
                found += [one.message.data for one in answer.received_messages]
        return found


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    function = Function(
        name="upload", entry_point="upload", trigger=TopicTrigger(topic="topic-1"), timeout_s=30, memory_mib=256,
        concurrency=4, retry=True,
    )  # fmt: skip
    injections = Injections()

    @asynccontextmanager
    async def served() -> AsyncIterator[Running]:
        storage = Storage(dir=tmp_path / "storage", injections=injections)
        server = Server(storage)
        pubsub = PubSub(dir=tmp_path / "pubsub", injections=injections)
        pubsub_host = f"127.0.0.1:{await pubsub.start()}"
        guard = ProcessGuard()
        deployment = Deployment(
            source=SOURCES, state=tmp_path, project="p1", region="us-central1", guard=guard,
            environment={"STORAGE_EMULATOR_HOST": server.url, "PUBSUB_EMULATOR_HOST": pubsub_host},
            write_log=lambda _entries: None,
        )  # fmt: skip
        host = FunctionsHost([function], deployment)
        injections.killer_of = host.killer_of
        try:
            await storage.start()
            await server.start()
            await host.start()
            instance = host.instances["upload"]

            def post(given: CloudEvent) -> int:
                return instance.post(given.headers, given.body)

            invoke = with_injections("upload", post, kill=instance.kill, injections=injections)
            yield Running(instance=instance, url=server.url, pubsub=pubsub_host, invoke=invoke)
        finally:
            await host.stop()
            await guard.stop(grace_s=1)
            await server.stop()
            await storage.stop()
            await pubsub.stop()

    with in_thread(served) as everything:
        httpx.post(
            f"{everything.url}/storage/v1/b?project=p1", json={"name": "inbox"}, timeout=60
        ).raise_for_status()
        with clients_of(everything.pubsub) as clients:
            clients.publisher.create_topic(name=TOPIC)
            clients.subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
        yield everything


@pytest.mark.parametrize(("kind", "done"), [("kill", False), ("kill_after", True)])
def test_the_process_that_makes_a_request_is_killed_before_or_after_it_is_done(
    running: Running, kind: str, done: bool
) -> None:
    before = running.instance.pid
    ask(running.url, {"name": "dead", "at": "storage.objects.insert", "kind": kind, "times": 1})
    # The same request from here, of a process that is no function, is none of the injection's.
    here = httpx.post(
        f"{running.url}/upload/storage/v1/b/inbox/o?uploadType=media&name=mine", content=b"x", timeout=60
    )
    assert here.status_code == 200
    assert running.invoke(event("a")) == 502
    assert running.objects() == (["a", "mine"] if done else ["mine"])
    running.bring(event("a"))  # to the process that was started in its place
    assert running.instance.pid != before
    assert running.objects() == ["a", "mine"]
    assert account(running.url, "dead")["on"] == ["storage.objects.insert inbox/a"]


@pytest.mark.parametrize(("kind", "told"), [("kill", [b"b"]), ("kill_after", [b"a", b"b"])])
def test_the_process_that_publishes_is_killed_before_or_after_it_is_done(
    running: Running, kind: str, told: list[bytes]
) -> None:
    ask(running.url, {"name": "dead", "at": "pubsub.publish", "kind": kind, "times": 1})
    assert running.invoke(event("a", topic=TOPIC)) == 502
    running.bring(event("b", topic=TOPIC))
    assert running.pulled(len(told)) == told
    assert account(running.url, "dead")["on"] == [f"pubsub.publish {TOPIC}"]


def test_a_process_killed_while_it_works_gives_no_answer_and_comes_back(running: Running) -> None:
    before = running.instance.pid
    ask(
        running.url,
        {"name": "held", "at": "storage.objects.insert", "kind": "reorder", "seconds": 600, "times": 1},
        {
            "name": "dead",
            "at": "functions.upload",
            "kind": "kill",
            "seconds": 1,
            "match": "inbox/a",
            "times": 1,
        },
    )
    # Its request is held back for longer than the function's timeout, so only the kill can end its work.
    assert running.invoke(event("a")) == 502
    assert account(running.url, "dead")["on"] == ["functions.upload inbox/a"]
    httpx.delete(f"{running.url}{PATH}", timeout=60).raise_for_status()
    running.bring(event("b"))
    assert running.instance.pid not in {None, before}
