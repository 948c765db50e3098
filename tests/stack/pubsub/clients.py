"""The official clients on one server, with the few moves that every test makes."""

import contextlib
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from google.cloud import pubsub_v1
from google.pubsub_v1 import PublisherClient as PlainPublisher

_NUMBERS = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The official clients on one server, and names that no other test uses."""

    kind: str
    address: str
    publisher: pubsub_v1.PublisherClient
    subscriber: pubsub_v1.SubscriberClient

    def topic(self) -> str:
        """A new topic."""
        return str(self.publisher.create_topic(name=self.topic_name()).name)

    def topic_name(self) -> str:
        return f"projects/p1/topics/topic-{next(_NUMBERS)}"

    def subscription_name(self) -> str:
        return f"projects/p1/subscriptions/subscription-{next(_NUMBERS)}"

    def subscription(self, topic: str, **config: object) -> str:
        """A new subscription to the topic."""
        request = {"name": self.subscription_name(), "topic": topic, **config}
        return str(self.subscriber.create_subscription(request=request).name)

    def pair(self, **config: object) -> tuple[str, str]:
        """A new topic, and a new subscription to it."""
        topic = self.topic()
        return topic, self.subscription(topic, **config)

    def publish(self, topic: str, *texts: str, key: str = "", **attributes: str) -> list[str]:
        """The ids of one message per text."""
        messages = [
            pubsub_v1.types.PubsubMessage(data=text.encode(), ordering_key=key, attributes=attributes)
            for text in texts
        ]
        return list(PlainPublisher.publish(self.publisher, topic=topic, messages=messages).message_ids)

    def pull(self, subscription: str, count: int = 100) -> list[pubsub_v1.types.ReceivedMessage]:
        """What one pull brings, waiting for at least one message at most a minute."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if found := self.peek(subscription, count):
                return found
            time.sleep(0.01)
        return []

    def peek(self, subscription: str, count: int = 100) -> list[pubsub_v1.types.ReceivedMessage]:
        """What is ready this moment."""
        request = {"subscription": subscription, "max_messages": count, "return_immediately": True}
        with warnings.catch_warnings():  # deprecated, yet the one way to ask without waiting
            warnings.simplefilter("ignore", DeprecationWarning)
            return list(self.subscriber.pull(request=request, timeout=20).received_messages)

    @contextlib.contextmanager
    def streaming(
        self,
        subscription: str,
        take: Callable[[pubsub_v1.subscriber.message.Message], object],
        **options: Any,
    ) -> Iterator[None]:
        """A subscriber's callback at work; the options are those of the client's own `subscribe`."""
        stream = self.subscriber.subscribe(subscription, take, **options)
        try:
            yield
        finally:
            stream.cancel()
            stream.result()

    def ack(self, subscription: str, *received: pubsub_v1.types.ReceivedMessage) -> None:
        self.subscriber.acknowledge(subscription=subscription, ack_ids=[one.ack_id for one in received])

    def nack(self, subscription: str, *received: pubsub_v1.types.ReceivedMessage, after_s: int = 0) -> None:
        ids = [one.ack_id for one in received]
        self.subscriber.modify_ack_deadline(
            subscription=subscription, ack_ids=ids, ack_deadline_seconds=after_s
        )


@contextlib.contextmanager
def connected(kind: str, address: str) -> Iterator[Clients]:
    """The official clients, pointed at a server the way their users do it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUBSUB_EMULATOR_HOST", address)
        publisher = pubsub_v1.PublisherClient()
        subscriber = pubsub_v1.SubscriberClient()
    with subscriber:
        try:
            yield Clients(kind=kind, address=address, publisher=publisher, subscriber=subscriber)
        finally:
            publisher.stop()
            publisher.transport.close()
