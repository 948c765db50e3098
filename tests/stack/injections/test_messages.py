"""Injections strike Pub/Sub calls and messages on their way out; the official clients see them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import pytest
from google.api_core.exceptions import ResourceExhausted, ServiceUnavailable
from google.pubsub_v1 import PublisherClient, PubsubMessage, StreamingPullRequest

from tests.stack.logging.stack import connected, service_entry
from trainstack import logging, pubsub, storage
from trainstack.events.clients import Clients, clients_of
from trainstack.injections import Injections, plan_from

from .conftest import account, ask, until

TOPIC = "projects/p1/topics/topic-1"
SUBSCRIPTION = "projects/p1/subscriptions/sub-1"


@pytest.fixture
def injections() -> Injections:
    return Injections()


@pytest.fixture
def host(tmp_path: Path, injections: Injections) -> Iterator[str]:
    with pubsub.serve(tmp_path / "pubsub", injections=injections) as address:
        yield address


@pytest.fixture
def clients(host: str) -> Iterator[Clients]:
    with clients_of(host) as connected_clients:
        connected_clients.publisher.create_topic(name=TOPIC)
        connected_clients.subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
        yield connected_clients


def strike(injections: Injections, at: str, kind: str, **fields: object) -> None:
    injections.put(plan_from({"name": "f1", "at": at, "kind": kind, **fields}))


def publish(clients: Clients, *data: bytes) -> None:
    """One call, without the retries that the client's own `publish` brings."""
    messages = [PubsubMessage(data=one) for one in data]
    PublisherClient.publish(clients.publisher, topic=TOPIC, messages=messages, retry=None, timeout=10)


def pulled(clients: Clients, count: int) -> list[bytes]:
    """The first messages that come, acknowledged when they are all there."""
    found: list[bytes] = []
    ack_ids: list[str] = []
    while len(found) < count:
        answer = clients.subscriber.pull(subscription=SUBSCRIPTION, max_messages=10, timeout=10)
        found += [one.message.data for one in answer.received_messages]
        ack_ids += [one.ack_id for one in answer.received_messages]
    clients.subscriber.acknowledge(subscription=SUBSCRIPTION, ack_ids=ack_ids)
    return found


def test_a_refused_publish_has_published_nothing(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.publish", "error_before", code=429, times=1, match=TOPIC)
    with pytest.raises(ResourceExhausted, match="injection 'f1' struck"):
        publish(clients, b"a")
    publish(clients, b"b")
    assert pulled(clients, 1) == [b"b"]
    assert injections.account("f1").on == [f"pubsub.publish {TOPIC}"]


def test_a_publish_that_is_not_told_of_comes_twice_when_it_is_tried_again(
    clients: Clients, injections: Injections
) -> None:
    strike(injections, "pubsub.publish", "error_after", times=1)
    clients.publisher.publish(TOPIC, b"a").result(timeout=60)  # the client tries UNAVAILABLE again by itself
    assert pulled(clients, 2) == [b"a", b"a"]


def test_a_dropped_call_breaks_off(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.publish", "drop", times=1)
    with pytest.raises(ServiceUnavailable):
        publish(clients, b"a")
    publish(clients, b"b")
    assert pulled(clients, 1) == [b"b"]
    assert injections.account("f1").struck == 1


def test_a_delayed_publish_takes_its_time_and_is_done_once(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.publish", "delay", seconds=0.3, times=1)
    began = time.monotonic()
    publish(clients, b"a")
    assert time.monotonic() - began >= 0.3
    publish(clients, b"b")
    assert pulled(clients, 2) == [b"a", b"b"]


def test_a_duplicated_publish_is_two_messages(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.publish", "duplicate", times=1)
    publish(clients, b"a")
    assert pulled(clients, 2) == [b"a", b"a"]


def test_a_message_is_lost_on_its_way_and_the_others_come(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.deliver", "drop", skip=1, times=2, match=SUBSCRIPTION)
    publish(clients, b"a", b"b", b"c", b"d")
    assert pulled(clients, 2) == [b"a", b"d"]
    assert [each.rpartition("#")[0] for each in injections.account("f1").on] == [
        f"pubsub.deliver {SUBSCRIPTION}"
    ] * 2


def test_a_subscriber_waits_through_a_batch_that_is_lost_whole(
    clients: Clients, injections: Injections
) -> None:
    strike(injections, "pubsub.deliver", "drop", times=3)
    publish(clients, b"a", b"b", b"c")
    publish(clients, b"d")
    assert pulled(clients, 1) == [b"d"]


def test_a_message_held_back_comes_later(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.deliver", "delay", seconds=0.2, times=1)
    publish(clients, b"a", b"b")
    assert pulled(clients, 2) == [b"b", b"a"]


def test_a_reordered_message_is_overtaken_by_those_behind_it(
    clients: Clients, injections: Injections
) -> None:
    strike(injections, "pubsub.deliver", "reorder", times=1)
    publish(clients, b"a", b"b", b"c")
    assert pulled(clients, 3) == [b"b", b"c", b"a"]


def test_a_duplicated_delivery_reaches_a_streaming_subscriber_twice(
    clients: Clients, injections: Injections
) -> None:
    strike(injections, "pubsub.deliver", "duplicate", times=1)
    received: list[bytes] = []

    def take(message: object) -> None:
        received.append(message.data)  # type: ignore[attr-defined]  # the client's message has no types
        message.ack()  # type: ignore[attr-defined]  # as above

    stream = clients.subscriber.subscribe(SUBSCRIPTION, callback=take)
    try:
        publish(clients, b"a")
        until(lambda: len(received) == 2, "both deliveries")
    finally:
        stream.cancel()
        stream.result(timeout=60)
    assert received == [b"a", b"a"]


def test_a_stream_is_refused_when_it_is_opened(clients: Clients, injections: Injections) -> None:
    strike(injections, "pubsub.streamingPull", "error_before", times=1)
    request = StreamingPullRequest(subscription=SUBSCRIPTION, stream_ack_deadline_seconds=10)
    with pytest.raises(ServiceUnavailable, match="injection 'f1' struck"):
        next(iter(clients.subscriber.streaming_pull(iter([request]), retry=None, timeout=10)))


@pytest.mark.slow
def test_sinks_deliver_through_errors_and_lose_what_is_dropped(tmp_path: Path, host: str) -> None:
    with logging.serve(tmp_path / "logging", host) as url, connected(url, host) as stack:
        stack.topic("ends")
        stack.sink("s1", "ends", 'severity="INFO"')
        ask(
            url,
            {"name": "broken", "at": "logging.export", "kind": "error_before", "times": 2},
            {"name": "untold", "at": "logging.export", "kind": "error_after", "times": 1},
        )
        stack.write(service_entry("one"))
        assert [one["textPayload"] for one in stack.received("ends", 2)] == ["one", "one"]
        assert account(url, "untold")["on"] == ["logging.export projects/p1/sinks/s1"]
        ask(url, {"name": "lost", "at": "logging.export", "kind": "drop", "times": 1})
        stack.write(service_entry("two"))
        until(lambda: account(url, "lost")["struck"] == 1, "the entry is lost")
        stack.write(service_entry("three"))
        assert [one["textPayload"] for one in stack.received("ends", 1)] == ["three"]


def test_notifications_come_twice_or_never(tmp_path: Path) -> None:
    published: list[str] = []

    def publish_to(_topic: str, messages: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        published.extend(attributes["objectId"] for _, attributes in messages)

    with (
        storage.serve(tmp_path / "storage", publish=publish_to) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        http.post("/storage/v1/b?project=p1", json={"name": "inbox"}).raise_for_status()
        topic = {
            "topic": f"//pubsub.googleapis.com/{TOPIC}",
            "payload_format": "JSON_API_V1",
            "event_types": ["OBJECT_FINALIZE"],
        }
        http.post("/storage/v1/b/inbox/notificationConfigs", json=topic).raise_for_status()
        ask(
            url,
            {"name": "lost", "at": "storage.notify", "kind": "drop", "match": "inbox/lost"},
            {
                "name": "untold",
                "at": "storage.notify",
                "kind": "error_after",
                "match": "inbox/untold",
                "times": 1,
            },
        )
        for name in ("lost", "untold", "last"):
            upload = f"/upload/storage/v1/b/inbox/o?uploadType=media&name={name}"
            http.post(upload, content=b"x").raise_for_status()
            until(lambda: _arrived(url, published, name), f"{name} in {published}")  # noqa: B023  # used at once
    assert published == ["untold", "untold", "last"]


def _arrived(url: str, published: list[str], name: str) -> bool:
    if name == "lost":
        return bool(account(url, "lost")["struck"] == 1)
    return published.count(name) == (2 if name == "untold" else 1)
