"""Changes of topics, detached subscriptions, and seeking back to a time or a snapshot."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.api_core.exceptions import FailedPrecondition, InvalidArgument, NotFound
from google.protobuf.duration_pb2 import Duration

from tests.judges.surfaces import gaps
from tests.stack.pubsub.clients import Clients, connected
from trainstack import pubsub
from trainstack.pubsub.checks.settings import SURFACE

DAY = Duration(seconds=86400)


def texts(clients: Clients, subscription: str) -> list[str]:
    """What is ready, acknowledged."""
    received = clients.peek(subscription)
    if received:
        clients.ack(subscription, *received)
    return [one.message.data.decode() for one in received]


def seek(clients: Clients, subscription: str, **target: object) -> None:
    clients.subscriber.seek(request={"subscription": subscription, **target})


def test_the_table_has_every_field_of_what_is_created() -> None:
    assert gaps(SURFACE, "pubsub.v1") == []


def test_a_topic_is_changed_by_a_mask(ours: Clients) -> None:
    topic = {"name": ours.topic(), "labels": {"a": "b"}, "message_retention_duration": DAY}
    request = {"topic": topic, "update_mask": {"paths": ["labels"]}}
    assert ours.publisher.update_topic(request=request).labels == {"a": "b"}
    assert not ours.publisher.get_topic(topic=topic["name"]).message_retention_duration
    with pytest.raises(InvalidArgument, match="cannot be changed"):
        ours.publisher.update_topic(request={**request, "update_mask": {"paths": ["name"]}})


def test_acknowledged_messages_are_sought_back_where_they_are_retained(ours: Clients) -> None:
    topic, retaining = ours.pair(retain_acked_messages=True)
    forgetful, filtered = ours.subscription(topic), ours.subscription(topic, filter="attributes:k")
    ours.publish(topic, "early", k="v")
    time.sleep(0.01)
    between = datetime.now(UTC)
    ours.publish(topic, "late")
    for subscription in (retaining, forgetful, filtered):
        texts(ours, subscription)
        seek(ours, subscription, time=between - timedelta(hours=1))
    assert [texts(ours, one) for one in (retaining, forgetful, filtered)] == [["early", "late"], [], []]
    seek(ours, retaining, time=between)
    assert texts(ours, retaining) == ["late"]
    seek(ours, retaining, time=datetime.now(UTC) + timedelta(days=1))
    assert texts(ours, retaining) == []


def test_a_topics_retention_reaches_subscriptions_made_later(ours: Clients) -> None:
    topic = ours.topic_name()
    ours.publisher.create_topic(request={"name": topic, "message_retention_duration": DAY})
    ours.publish(topic, "before")
    subscription = ours.subscription(topic)
    assert texts(ours, subscription) == []
    seek(ours, subscription, time=datetime.now(UTC) - timedelta(hours=1))
    assert texts(ours, subscription) == ["before"]


def test_a_snapshot_brings_its_backlog_and_what_came_later_even_after_a_kill(tmp_path: Path) -> None:
    snapshot = "projects/p1/snapshots/snapshot-1"
    with pubsub.serve(tmp_path) as address, connected("ours", address) as ours:
        topic, subscription = ours.pair()
        ours.publish(topic, "acknowledged")
        texts(ours, subscription)
        ours.publish(topic, "owed")
        made = ours.subscriber.create_snapshot(request={"name": snapshot, "subscription": subscription})
        assert timedelta(days=6) < made.expire_time - datetime.now(UTC) < timedelta(days=7)
        ours.publish(topic, "later")
        assert texts(ours, subscription) == ["owed", "later"]
    with pubsub.serve(tmp_path) as address, connected("ours", address) as ours:
        seek(ours, subscription, snapshot=snapshot)
        assert texts(ours, subscription) == ["owed", "later"]
        assert list(ours.publisher.list_topic_snapshots(topic=topic)) == [snapshot]
        with pytest.raises(InvalidArgument, match="different topics"):
            seek(ours, ours.pair()[1], snapshot=snapshot)
        ours.subscriber.delete_snapshot(snapshot=snapshot)
        with pytest.raises(NotFound):
            seek(ours, subscription, snapshot=snapshot)


def test_a_seek_frees_what_a_stream_holds(ours: Clients) -> None:
    topic, subscription = ours.pair()
    ours.publish(topic, "first")
    ours.pull(subscription)
    seek(ours, subscription, time=datetime.now(UTC) - timedelta(hours=1))
    assert texts(ours, subscription) == ["first"]


def test_a_detached_subscription_has_no_messages(ours: Clients) -> None:
    topic, subscription = ours.pair()
    ours.publish(topic, "lost")
    ours.publisher.detach_subscription(request={"subscription": subscription})
    assert ours.subscriber.get_subscription(subscription=subscription).detached
    with pytest.raises(FailedPrecondition, match="detached"):
        ours.peek(subscription)


def test_messages_of_a_key_are_delivered_in_order_even_after_a_nack_and_a_restart(tmp_path: Path) -> None:
    with pubsub.serve(tmp_path) as address, connected("ours", address) as ours:
        topic, subscription = ours.pair(enable_message_ordering=True)
        ours.publish(topic, "a1", "a2", "a3", key="a")
        ours.publish(topic, "b1", key="b")
        ours.publish(topic, "free")
        first = ours.pull(subscription)
        assert [one.message.data for one in first] == [b"a1", b"b1", b"free"]
        ours.nack(subscription, first[0])
        assert texts(ours, subscription) == ["a1"]
        assert [one.message.data for one in ours.peek(subscription)] == [b"a2"]
    with pubsub.serve(tmp_path) as address, connected("ours", address) as ours:
        assert "a3" not in texts(ours, subscription)
        assert texts(ours, subscription) == ["a3"]
