"""A Pub/Sub server, a recording stand-in for a function, and deliveries between them."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.fixtures import fixture_of
from tests.judges.events import event_faults
from trainstack.events.backoff import Backoff
from trainstack.events.clients import PubsubClients, clients_of
from trainstack.events.cloudevent import CloudEvent
from trainstack.events.delivery import Delivery
from trainstack.events.eventarc import ensure_subscription, ensure_topic, subscription_of, transport_of
from trainstack.functions.function import Function, TopicTrigger, Trigger
from trainstack.http import in_thread
from trainstack.pubsub import serve

PROJECT, REGION = "p1", "us-central1"
DEADLINE_S = 60


class Recorder:
    """Answers events as configured, and remembers them, with what Google's types of events say against them."""

    def __init__(self) -> None:
        self.events: list[CloudEvent] = []
        self.faults: list[str] = []
        self.answer: Callable[[CloudEvent], int] = lambda _event: 200
        self.most_at_once = 0
        self._at_once = 0
        self._changed = threading.Condition()

    def __call__(self, event: CloudEvent) -> int:
        with self._changed:
            self.events.append(event)
            self.faults += event_faults(event.headers["ce-type"], json.loads(event.body))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._changed.notify_all()
        try:
            return self.answer(event)
        finally:
            with self._changed:
                self._at_once -= 1

    def wait_for(self, count: int) -> list[CloudEvent]:
        """The first events, once there are `count`."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.events) >= count, DEADLINE_S), self.events
            return self.events[:count]


Deliver = Callable[[Function, Recorder], AbstractContextManager[None]]


host = fixture_of(serve, scope="function")


@pytest.fixture
def clients(host: str) -> Iterator[PubsubClients]:
    with clients_of(host) as connected:
        yield connected


@pytest.fixture
def deliver(clients: PubsubClients) -> Deliver:
    """Delivers a function's events to a recorder while the block runs."""

    def delivering(function: Function, recorder: Recorder) -> AbstractContextManager[None]:
        transport = transport_of(function, project=PROJECT, region=REGION)
        ensure_topic(clients.publisher, transport.topic_name)
        backoff = Backoff(min_s=0.1, max_s=0.4)
        ensure_subscription(clients.subscriber, subscription_of(function, transport, backoff))

        @asynccontextmanager
        async def running() -> AsyncIterator[None]:
            delivery = Delivery(
                function=function, transport=transport, subscriber=clients.subscriber, invoke=recorder
            )
            delivery.start()
            try:
                yield
            finally:
                await delivery.stop()

        return in_thread(running)

    return delivering


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    assert not recorder.faults, recorder.faults


def function(trigger: Trigger | None = None, *, retry: bool = True, **more: Any) -> Function:
    """The function `f1` of the topic `topic-1`, if no other trigger is given."""
    defaults: dict[str, Any] = {"timeout_s": 30, "memory_mib": 256, "concurrency": 8}
    return Function(
        name="f1",
        entry_point="f1",
        trigger=trigger or TopicTrigger(topic="topic-1"),
        retry=retry,
        **{**defaults, **more},
    )
