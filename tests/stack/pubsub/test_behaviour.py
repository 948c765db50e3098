"""Behaviour that Google's emulator and ours share: one suite over both."""

from datetime import UTC, datetime

import pytest
from google.api_core.exceptions import AlreadyExists, InvalidArgument, NotFound
from google.cloud import pubsub_v1

from tests.stack.pubsub.clients import Clients
from tests.stack.waiting import wait_until


def texts(received: list[pubsub_v1.types.ReceivedMessage]) -> list[str]:
    return [one.message.data.decode() for one in received]


@pytest.mark.slow
def test_a_published_message_arrives_whole(either: Clients) -> None:
    topic, subscription = either.pair()
    (message_id,) = either.publish(topic, "hello", colour="green")
    (received,) = either.pull(subscription)
    assert (received.message.data, dict(received.message.attributes)) == (b"hello", {"colour": "green"})
    assert received.message.message_id == message_id
    assert abs((datetime.now(UTC) - received.message.publish_time).total_seconds()) < 60
    assert received.delivery_attempt == 0


def test_every_subscription_gets_its_own_copy(either: Clients) -> None:
    topic = either.topic()
    first, second = either.subscription(topic), either.subscription(topic)
    either.publish(topic, "hello")
    either.ack(first, *either.pull(first))
    assert texts(either.pull(second)) == ["hello"]


def test_a_subscription_gets_only_what_is_published_after_its_creation(either: Clients) -> None:
    topic = either.topic()
    either.publish(topic, "before")
    subscription = either.subscription(topic)
    either.publish(topic, "after")
    assert texts(either.pull(subscription)) == ["after"]


def test_a_message_comes_again_when_its_deadline_passes_and_not_before(either: Clients) -> None:
    topic, subscription = either.pair()
    either.publish(topic, "hello")
    (received,) = either.pull(subscription)
    assert either.peek(subscription) == []
    either.nack(subscription, received, after_s=1)
    assert texts(either.pull(subscription)) == ["hello"]


def test_an_acknowledged_message_never_comes_again(either: Clients) -> None:
    topic, subscription = either.pair()
    either.publish(topic, "one", "two")
    received = either.pull(subscription)
    while len(received) < 2:
        received += either.pull(subscription)
    either.ack(subscription, received[0])
    either.nack(subscription, *received)
    assert texts(either.pull(subscription)) == texts(received[1:])
    assert either.peek(subscription) == []


def test_a_message_that_keeps_failing_goes_to_the_dead_letter_topic_with_its_history(either: Clients) -> None:
    topic, dead = either.topic(), either.topic()
    policy = {"dead_letter_topic": dead, "max_delivery_attempts": 5}
    subscription, dead_subscription = (
        either.subscription(topic, dead_letter_policy=policy),
        either.subscription(dead),
    )
    either.publish(topic, "poison", colour="green")
    attempts = []
    for _ in range(5):
        (received,) = either.pull(subscription)
        attempts.append(received.delivery_attempt)
        either.nack(subscription, received)
    # The official emulator forwards only on the next pull, which then returns nothing.
    assert either.peek(subscription) == []
    (letter,) = either.pull(dead_subscription)
    assert attempts == [1, 2, 3, 4, 5]
    assert letter.message.data == b"poison"
    attributes = dict(letter.message.attributes)
    assert attributes["colour"] == "green"
    assert attributes["CloudPubSubDeadLetterSourceDeliveryCount"] == "5"
    assert attributes["CloudPubSubDeadLetterSourceSubscription"] == subscription.rpartition("/")[2]
    assert attributes["CloudPubSubDeadLetterSourceSubscriptionProject"] == "p1"
    assert "CloudPubSubDeadLetterSourceTopicPublishTime" in attributes
    assert either.peek(subscription) == []


def test_a_stream_brings_messages_and_takes_acknowledgements(either: Clients) -> None:
    topic, subscription = either.pair()
    seen: list[str] = []

    def take(message: pubsub_v1.subscriber.message.Message) -> None:
        seen.append(message.data.decode())
        if len(seen) == 1:
            message.nack()
        else:
            message.ack()

    with either.streaming(subscription, take):
        either.publish(topic, "one", "two")
        wait_until(lambda: len(seen) == 3, "two messages and a second delivery")
    assert sorted(set(seen)) == ["one", "two"]
    assert either.peek(subscription) == []


def test_a_deleted_topic_leaves_its_subscriptions_detached_with_what_they_are_owed(either: Clients) -> None:
    topic, subscription = either.pair()
    either.publish(topic, "hello")
    either.publisher.delete_topic(topic=topic)
    assert either.subscriber.get_subscription(subscription=subscription).topic == "_deleted-topic_"
    with pytest.raises(NotFound):
        either.publish(topic, "too late")


def test_names_are_taken_once_and_must_exist(either: Clients) -> None:
    topic, subscription = either.pair()
    with pytest.raises(AlreadyExists):
        either.publisher.create_topic(name=topic)
    with pytest.raises(AlreadyExists):
        either.subscriber.create_subscription(name=subscription, topic=topic)
    with pytest.raises(NotFound):
        either.subscriber.create_subscription(name=either.subscription_name(), topic=either.topic_name())
    with pytest.raises(NotFound):
        either.publisher.get_topic(topic=either.topic_name())
    with pytest.raises(NotFound):
        either.peek(either.subscription_name())


@pytest.mark.parametrize("topic_id", ["ab", "1abc", "googly", "a b c", "a" * 256])
def test_a_forbidden_topic_id_is_refused(either: Clients, topic_id: str) -> None:
    with pytest.raises(InvalidArgument):
        either.publisher.create_topic(name=f"projects/p1/topics/{topic_id}")


def test_an_empty_message_is_refused(either: Clients) -> None:
    with pytest.raises(InvalidArgument):
        either.publish(either.topic(), "")


def test_a_subscription_is_listed_with_its_topic_and_project(either: Clients) -> None:
    topic = either.topic()
    names = {either.subscription(topic) for _ in range(3)}
    assert set(either.publisher.list_topic_subscriptions(topic=topic)) == names
    assert names <= {one.name for one in either.subscriber.list_subscriptions(project="projects/p1")}
    pages = either.publisher.list_topics(request={"project": "projects/p1", "page_size": 1}).pages
    listed = [one.name for page in pages for one in page.topics]
    assert topic in listed
    assert len(listed) == len(set(listed))


def test_a_masked_update_changes_that_field_alone(either: Clients) -> None:
    _, subscription = either.pair(ack_deadline_seconds=20)
    update = {"name": subscription, "ack_deadline_seconds": 30, "labels": {"ignored": "yes"}}
    changed = either.subscriber.update_subscription(
        request={"subscription": update, "update_mask": {"paths": ["ack_deadline_seconds"]}}
    )
    assert (changed.ack_deadline_seconds, dict(changed.labels)) == (30, {})
