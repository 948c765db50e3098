"""What a pull gives to a caller who waits no longer."""

import asyncio
from pathlib import Path

from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.admin import Admin
from trainmaster.local.pubsub.broker import Broker
from trainmaster.local.pubsub.publisher import Publisher
from trainmaster.local.pubsub.store import Store
from trainmaster.local.pubsub.subscriber import Subscriber

TOPIC, SUBSCRIPTION = "projects/p1/topics/topic", "projects/p1/subscriptions/subscription"


def test_whoever_is_gone_is_given_nothing_and_the_next_one_everything(tmp_path: Path) -> None:
    async def pulled() -> tuple[int, int]:
        broker = Broker(store)
        admin = Admin(broker, changed=lambda _subscription: None)
        publisher, subscriber = Publisher(broker, admin), Subscriber(broker, admin)
        await publisher.CreateTopic(wire.Topic(name=TOPIC), 1)
        await subscriber.CreateSubscription(wire.Subscription(name=SUBSCRIPTION, topic=TOPIC), 1)
        message = wire.PubsubMessage(data=b"a letter")
        await publisher.Publish(wire.request_class("Publish")(topic=TOPIC, messages=[message]), 1)
        request = wire.request_class("Pull")(subscription=SUBSCRIPTION, max_messages=9)
        gone = await subscriber.Pull(request, 0.0)
        there = await subscriber.Pull(request, 10.0)
        return len(gone.received_messages), len(there.received_messages)

    store = Store(tmp_path)
    try:
        assert asyncio.run(pulled()) == (0, 1)
    finally:
        store.close()
