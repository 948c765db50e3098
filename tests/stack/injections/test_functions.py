"""Injections strike events on their way to a function, and kill its process while it works."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.stack.waiting import wait_until
from trainstack.events.cloudevent import CloudEvent
from trainstack.events.injections import with_injections
from trainstack.functions import (
    Function,
    FunctionDeployment,
    FunctionsHost,
    Instance,
    TopicTrigger,
    fork_server,
)
from trainstack.http import Server, in_thread
from trainstack.injections import Injections, plan_from
from trainstack.process.processes import ProcessGuard
from trainstack.storage import Storage

from .conftest import PATH, account, ask

SOURCES = Path(__file__).parent / "sources"
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


class RecordingFunction:
    """A function that remembers what it received."""

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
        ("kill", 502, 1, 1),
        ("kill_after", 502, 1, 1),
    ],
)
def test_each_kind_of_injection_strikes_an_event(kind: str, status: int, told: int, kills: int) -> None:
    function = RecordingFunction()
    assert function.through(kind, seconds=0.01, match="inbox/requests/a b.yaml")(event()) == status
    assert (len(function.ids), function.kills) == (told, kills)


def test_an_event_of_another_object_is_left_alone() -> None:
    function = RecordingFunction()
    assert function.through("drop", match="inbox/rules/*")(event()) == 204


def test_a_delayed_event_arrives_when_its_time_is_over() -> None:
    function = RecordingFunction()
    began = time.monotonic()
    function.through("delay", seconds=0.3)(event())
    assert time.monotonic() - began >= 0.3


def test_a_duplicate_is_brought_while_the_first_is_still_worked_on() -> None:
    function = RecordingFunction()
    both = threading.Barrier(2)
    function.before_answer = lambda: both.wait(20)  # passes only when two are here at once
    assert function.through("duplicate")(event()) == 204


@dataclass(frozen=True, kw_only=True)
class Running:
    """A function in a real process, a storage server, and the injections of both."""

    instance: Instance
    url: str
    invoke: Callable[[CloudEvent], int]

    def objects(self) -> list[str]:
        found = httpx.get(f"{self.url}/storage/v1/b/inbox/o", timeout=60).json().get("items", [])
        return [one["name"] for one in found]

    def bring(self, given: CloudEvent) -> None:
        """Until it is accepted: while the last killed process dies, the port accepts connections that no process answers."""
        wait_until(lambda: self.invoke(given) == 200, "the event is taken")


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
        guard = ProcessGuard()
        deployment = FunctionDeployment(
            server=fork_server(SOURCES, {}, guard), state=tmp_path, project="p1", region="us-central1",
            environment={"STORAGE_EMULATOR_HOST": server.url},
            write_log=lambda _entries: None,
        )  # fmt: skip
        host = FunctionsHost([function], deployment)
        try:
            await storage.start()
            await server.start()
            await host.start()
            instance = host.instances["upload"]

            def post(given: CloudEvent) -> int:
                return instance.post(given.headers, given.body)

            invoke = with_injections("upload", post, kill=instance.kill, injections=injections)
            yield Running(instance=instance, url=server.url, invoke=invoke)
        finally:
            await host.stop()
            await guard.stop(grace_s=1)
            await server.stop()
            await storage.stop()

    with in_thread(served) as everything:
        httpx.post(
            f"{everything.url}/storage/v1/b?project=p1", json={"name": "inbox"}, timeout=60
        ).raise_for_status()
        yield everything


@pytest.mark.slow
def test_a_process_killed_while_it_works_gives_no_answer_and_comes_back(running: Running) -> None:
    before = running.instance.pid
    ask(
        running.url,
        {"name": "held", "at": "storage.objects.insert", "kind": "delay", "seconds": 600, "times": 1},
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
