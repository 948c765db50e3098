"""Everything whose call had returned survives a SIGKILL."""

from pathlib import Path

import pytest

from tests.stack.pubsub.clients import connected
from tests.stack.services import alone


@pytest.mark.slow
def test_topics_subscriptions_and_unacknowledged_messages_come_back_after_a_kill(tmp_path: Path) -> None:
    with alone("pubsub", tmp_path) as (process, address), connected("ours", address) as before:
        topic = before.topic()
        policy = {"dead_letter_topic": before.topic(), "max_delivery_attempts": 5}
        subscription = before.subscription(topic, filter="attributes:wanted", dead_letter_policy=policy)
        ids = before.publish(topic, *"abcdef", wanted="yes")
        before.publish(topic, "unwanted")
        received = before.pull(subscription)
        assert len(received) == 6
        before.ack(subscription, *received[:2])
        before.nack(subscription, received[2])
        process.kill()
        process.wait()
    with alone("pubsub", tmp_path) as (_, address), connected("ours", address) as after:
        assert [one.name for one in after.publisher.list_topics(project="projects/p1")] != []
        again = after.pull(subscription)
        assert [one.message.message_id for one in again] == ids[2:]
        assert [one.delivery_attempt for one in again] == [2, 1, 1, 1]
        # An acknowledgement of a delivery made before the kill still counts.
        after.ack(subscription, received[3])
        after.nack(subscription, *again)
        assert {one.message.message_id for one in after.pull(subscription)} == {ids[2], ids[4], ids[5]}
        assert int(after.publish(topic, "new", wanted="yes")[0]) > int(ids[-1])
