"""Injections strike Pub/Sub calls and messages on their way out; the official clients see them."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import ResourceExhausted, ServiceUnavailable
from google.pubsub_v1 import PublisherClient, PubsubMessage, StreamingPullRequest

from trainstack import pubsub
from trainstack.events.clients import PubsubClients, clients_of
from trainstack.injections import Injections, plan_from
from trainstack.injections.active import Struck, injected_send
from trainstack.publisher import Message
from trainstack.storage.injections import notification_subjects

from .conftest import account_in

TOPIC = "projects/p1/topics/topic-1"
SUBSCRIPTION = "projects/p1/subscriptions/sub-1"


@pytest.fixture(scope="module")
def shared() -> Injections:
    return Injections()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory, shared: Injections) -> Iterator[PubsubClients]:
    folder = tmp_path_factory.mktemp("pubsub")
    with pubsub.serve(folder, injections=shared) as host, clients_of(host) as connected_clients:
        connected_clients.publisher.create_topic(name=TOPIC)
        connected_clients.subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
        yield connected_clients


@pytest.fixture
def injections(shared: Injections) -> Iterator[Injections]:
    yield shared
    shared.remove()


def strike(injections: Injections, at: str, kind: str, **fields: object) -> None:
    injections.put(plan_from({"name": "f1", "at": at, "kind": kind, **fields}))


def publish(clients: PubsubClients, *data: bytes) -> None:
    """One call, without the retries that the client's own `publish` brings."""
    messages = [PubsubMessage(data=one) for one in data]
    PublisherClient.publish(clients.publisher, topic=TOPIC, messages=messages, retry=None, timeout=10)


def pulled(clients: PubsubClients, count: int) -> list[bytes]:
    """The first messages that come, acknowledged when they are all there."""
    found: list[bytes] = []
    ack_ids: list[str] = []
    while len(found) < count:
        answer = clients.subscriber.pull(subscription=SUBSCRIPTION, max_messages=10, timeout=10)
        found += [one.message.data for one in answer.received_messages]
        ack_ids += [one.ack_id for one in answer.received_messages]
    clients.subscriber.acknowledge(subscription=SUBSCRIPTION, ack_ids=ack_ids)
    return found


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [("error_before", {"code": 429, "match": TOPIC}, ResourceExhausted), ("drop", {}, ServiceUnavailable)],
)
def test_a_refused_or_dropped_publish_has_published_nothing(
    clients: PubsubClients,
    injections: Injections,
    kind: str,
    fields: dict[str, object],
    error: type[Exception],
) -> None:
    strike(injections, "pubsub.publish", kind, times=1, **fields)
    with pytest.raises(error, match="injection 'f1' struck" if kind == "error_before" else None):
        publish(clients, b"a")
    publish(clients, b"b")
    assert pulled(clients, 1) == [b"b"]
    assert account_in(injections.to_json(), "f1")["on"] == [f"pubsub.publish {TOPIC}"]


@pytest.mark.parametrize("kind", ["error_after", "duplicate"])
def test_a_publish_that_is_repeated_after_an_error_or_by_the_stack_is_two_messages(
    clients: PubsubClients, injections: Injections, kind: str
) -> None:
    strike(injections, "pubsub.publish", kind, times=1)
    clients.publisher.publish(TOPIC, b"a").result(timeout=60)  # the client tries UNAVAILABLE again by itself
    assert pulled(clients, 2) == [b"a", b"a"]


@pytest.mark.parametrize(
    ("kind", "fields", "published", "arrived"),
    [
        ("drop", {"skip": 1, "times": 2, "match": SUBSCRIPTION}, [b"abcd"], b"ad"),
        ("drop", {"times": 3}, [b"abc", b"d"], b"d"),
        ("delay", {"seconds": 0.2, "times": 1}, [b"ab"], b"ba"),
        ("reorder", {"times": 1}, [b"abc"], b"bca"),
    ],
    ids=["some are lost", "a whole batch is lost", "one is held back", "one is overtaken"],
)
def test_messages_are_struck_on_their_way_out(
    clients: PubsubClients,
    injections: Injections,
    kind: str,
    fields: dict[str, Any],
    published: list[bytes],
    arrived: bytes,
) -> None:
    """Each byte is a message, each element of `published` a batch."""
    strike(injections, "pubsub.deliver", kind, **fields)
    for batch in published:
        publish(clients, *(bytes([each]) for each in batch))
    assert b"".join(pulled(clients, len(arrived))) == arrived
    assert {each.rpartition("#")[0] for each in account_in(injections.to_json(), "f1")["on"]} == {
        f"pubsub.deliver {SUBSCRIPTION}"
    }
    assert account_in(injections.to_json(), "f1")["struck"] == fields["times"]


def test_a_stream_is_refused_when_it_is_opened(clients: PubsubClients, injections: Injections) -> None:
    strike(injections, "pubsub.streamingPull", "error_before", times=1)
    request = StreamingPullRequest(subscription=SUBSCRIPTION, stream_ack_deadline_seconds=10)
    with pytest.raises(ServiceUnavailable, match="injection 'f1' struck"):
        next(iter(clients.subscriber.streaming_pull(iter([request]), retry=None, timeout=10)))


def test_notifications_come_twice_or_never(tmp_path: Path) -> None:
    sent: list[str] = []

    def send(_topic: str, messages: Sequence[Message]) -> None:
        sent.extend(attributes["objectId"] for _, attributes in messages)

    injections = Injections()
    outbox = injected_send(injections, "storage.notify", send, notification_subjects)
    for name, kind in (("lost", "drop"), ("untold", "error_after"), ("refused", "error_before")):
        injections.put(
            plan_from({"name": name, "at": "storage.notify", "kind": kind, "match": f"inbox/{name}"})
        )

    async def notify(name: str) -> None:
        await outbox(TOPIC, [(b"", {"bucketId": "inbox", "objectId": name})])

    for name in ("lost", "told"):
        asyncio.run(notify(name))
    for name in ("untold", "refused"):  # the outbox sends these again
        with pytest.raises(Struck):
            asyncio.run(notify(name))
    assert sent == ["told", "untold"]
