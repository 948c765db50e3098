"""A pull whose caller no longer waits."""

import contextlib
from pathlib import Path

from tests.stack.waiting import in_time
from trainstack.pubsub import wire
from trainstack.pubsub.api.methods import publish, pull
from trainstack.pubsub.resources import create_subscription, create_topic
from trainstack.pubsub.service import PubsubService
from trainstack.pubsub.store import PubsubStore

TOPIC, SUBSCRIPTION = "projects/p1/topics/topic", "projects/p1/subscriptions/subscription"


@in_time
async def test_a_caller_who_is_gone_gets_nothing_and_the_next_one_everything(tmp_path: Path) -> None:
    with contextlib.closing(PubsubStore(tmp_path)) as store:
        service = PubsubService(store)
        create_topic(service, wire.Topic(name=TOPIC))
        subscription = wire.Subscription(name=SUBSCRIPTION, topic=TOPIC)
        create_subscription(service, subscription)
        message = wire.PubsubMessage(data=b"a letter")
        publish(service, wire.PublishRequest(topic=TOPIC, messages=[message]))
        request = wire.PullRequest(subscription=SUBSCRIPTION, max_messages=9)
        gone = await pull(service, request, 0.0)
        there = await pull(service, request, 10.0)
        assert (len(gone.received_messages), len(there.received_messages)) == (0, 1)
