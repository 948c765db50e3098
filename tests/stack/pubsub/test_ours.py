"""Behaviour of our emulator that Google's does not share."""

import contextlib
import threading
import time

import pytest
from google.api_core.exceptions import (
    DeadlineExceeded,
    InvalidArgument,
    MethodNotImplemented,
    NotFound,
    ResourceExhausted,
)
from google.cloud import pubsub_v1
from google.protobuf.duration_pb2 import Duration
from google.pubsub_v1 import PublisherClient as PlainPublisher

from tests.stack.pubsub.clients import Clients
from tests.stack.waiting import wait_until
from trainstack import pubsub
from trainstack.sqlite import StateInUseError


def test_a_filter_lets_matching_messages_through_and_acknowledges_the_others(ours: Clients) -> None:
    topic, subscription = ours.pair(filter='attributes.kind = "model" AND NOT attributes:draft')
    ours.publish(topic, "yes", kind="model")
    ours.publish(topic, "draft", kind="model", draft="")
    ours.publish(topic, "other", kind="log")
    ours.publish(topic, "yes too", kind="model", colour="green")
    (first, second) = ours.pull(subscription)
    assert [first.message.data, second.message.data] == [b"yes", b"yes too"]
    ours.nack(subscription, first, second)
    assert len(ours.pull(subscription)) == 2


def test_a_subscription_that_owes_too_much_refuses_more_until_some_is_acknowledged(
    ours: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainstack.pubsub.service.OWED_MAX", 2)
    topic, subscription = ours.pair()
    ours.publish(topic, "first", "second")
    with pytest.raises(ResourceExhausted, match=r"has 2 unacknowledged messages.*at most 2"):
        PlainPublisher.publish(
            ours.publisher, topic=topic, messages=[pubsub_v1.types.PubsubMessage(data=b"third")], retry=None
        )
    (first, _) = ours.pull(subscription)
    ours.ack(subscription, first)
    ours.publish(topic, "third")


def test_a_filter_is_fixed_at_creation(ours: Clients) -> None:
    changed = {"name": ours.subscription(ours.topic()), "filter": "attributes:a"}
    with pytest.raises(InvalidArgument, match="cannot be changed"):
        ours.subscriber.update_subscription(
            request={"subscription": changed, "update_mask": {"paths": ["filter"]}}
        )


def test_an_unsupported_setting_is_refused_by_its_name(ours: Clients) -> None:
    with pytest.raises(MethodNotImplemented, match=r"Subscription\.pushConfig is not imitated"):
        ours.subscription(ours.topic(), push_config={"push_endpoint": "http://127.0.0.1:1/"})


def test_a_retry_policy_holds_a_failed_message_back(ours: Clients) -> None:
    topic = ours.topic()
    policy = {"minimum_backoff": Duration(seconds=1), "maximum_backoff": Duration(seconds=1)}
    subscription = ours.subscription(topic, retry_policy=policy)
    ours.publish(topic, "hello")
    received = ours.pull(subscription)
    began = time.monotonic()
    ours.nack(subscription, *received)
    assert len(ours.pull(subscription)) == 1
    assert time.monotonic() - began >= 1


def test_a_pull_without_messages_answers_empty_before_its_time_is_up(ours: Clients) -> None:
    subscription = ours.subscription(ours.topic())
    for _ in range(10):  # the answer has half a second for its way, which a busy machine may need
        with contextlib.suppress(DeadlineExceeded):
            answer = ours.subscriber.pull(subscription=subscription, max_messages=1, timeout=0.8)
            break
    else:
        pytest.fail("no pull was answered before its time was up")
    assert list(answer.received_messages) == []


def test_a_pull_that_waits_gets_what_is_published_meanwhile(ours: Clients) -> None:
    topic, subscription = ours.pair()
    publishing = threading.Timer(0.2, ours.publish, (topic, "hello"))
    publishing.start()
    answer = ours.subscriber.pull(subscription=subscription, max_messages=1, timeout=10)
    publishing.join()
    assert len(answer.received_messages) == 1


def test_a_stream_never_holds_more_than_its_flow_control_allows(ours: Clients) -> None:
    topic, subscription = ours.pair()
    ours.publish(topic, *(str(number) for number in range(30)))
    taken: list[pubsub_v1.subscriber.message.Message] = []
    control = pubsub_v1.types.FlowControl(max_messages=10)
    with ours.streaming(subscription, taken.append, flow_control=control):
        wait_until(lambda: len(taken) == 10, "ten messages")
        waiting = ours.peek(subscription)
        assert len(waiting) == 20
        ours.nack(subscription, *waiting)
        for seen in range(30):
            wait_until(lambda seen=seen: len(taken) > seen, "the next message")  # type: ignore[misc]
            taken[seen].ack()
    assert len({message.message_id for message in taken}) == 30


def test_deleting_a_subscription_ends_its_streams(ours: Clients) -> None:
    subscription = ours.subscription(ours.topic())
    stream = ours.subscriber.subscribe(subscription, lambda message: message.ack())
    ours.subscriber.delete_subscription(subscription=subscription)
    with pytest.raises(NotFound):
        stream.result(timeout=60)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"ack_deadline_seconds": 9}, "ack deadline 9 s"),
        ({"ack_deadline_seconds": 601}, "ack deadline 601 s"),
        ({"message_retention_duration": Duration(seconds=60)}, "message retention 0:01:00"),
        ({"retry_policy": {"minimum_backoff": Duration(seconds=601)}}, "retry policy"),
        ({"message_retention_duration": Duration(seconds=2**62)}, "Invalid duration"),
        ({"filter": "attributes.a = b"}, "Invalid filter"),
        ({"filter": "x" * 257}, "Invalid filter"),
    ],
)
def test_an_invalid_setting_is_refused_with_the_reason(
    ours: Clients, config: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named):
        ours.subscription(ours.topic(), **config)


def test_too_large_a_message_or_attribute_is_refused_with_the_limit(ours: Clients) -> None:
    topic = ours.topic()
    with pytest.raises(InvalidArgument, match="maximum value is 10000000"):
        ours.publish(topic, "x" * 10_000_001)
    with pytest.raises(InvalidArgument, match=r"messages\[0\].*1024 bytes"):
        ours.publish(topic, "x", colour="x" * 1025)
    ours.publish(topic, "x" * 9_900_000)


def test_a_state_folder_serves_one_emulator_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("state")
    with pubsub.serve(folder), pytest.raises(StateInUseError, match="in use"), pubsub.serve(folder):
        pass


def test_a_port_that_is_taken_is_named(ours: Clients, tmp_path_factory: pytest.TempPathFactory) -> None:
    port = int(ours.address.rpartition(":")[2])
    folder = tmp_path_factory.mktemp("state")
    with pytest.raises(OSError, match=f"Port {port} of 127.0.0.1 is taken"), pubsub.serve(folder, port=port):
        pass
    with pubsub.serve(folder) as address:  # the failed start let go of the state
        assert address != ours.address


@pytest.mark.parametrize("token", ["z", "-1", "A" * 10_000])
def test_a_page_token_of_no_page_is_refused(ours: Clients, token: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid page token"):
        list(ours.publisher.list_topics(request={"project": "projects/p1", "page_token": token}))
