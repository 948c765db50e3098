"""What a subscriber of the notices topic hears, through the official client."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainmaster.client.clients import Target

TOPIC = "trainmaster-notices"
SUBSCRIPTION = "demo-retrain"


class Heard:
    """The notices heard so far, each once: they come at least once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, dict[str, Any]] = {}

    def take(self, message: Any) -> None:  # Any: the client's message class has no types
        """Called by the client's own threads."""
        notice = json.loads(message.data)
        with self._lock:
            self._by_id.setdefault(str(notice["id"]), notice)
        message.ack()

    def notices(self) -> tuple[dict[str, Any], ...]:
        """In the order in which they came; schemas/notice.v1.schema.json."""
        with self._lock:
            return tuple(self._by_id.values())


@contextmanager
def listening(target: Target, pubsub_host: str) -> Iterator[Heard]:
    """Hears every notice that is published from now on, until the end of the block."""
    import grpc
    from google.cloud.pubsub_v1 import SubscriberClient
    from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

    channel = grpc.insecure_channel(pubsub_host)
    subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
    name = subscriber.subscription_path(target.project, SUBSCRIPTION)
    subscriber.create_subscription(name=name, topic=subscriber.topic_path(target.project, TOPIC))
    heard = Heard()
    stream = subscriber.subscribe(name, heard.take)
    try:
        yield heard
    finally:
        stream.cancel()
        stream.result()
        subscriber.close()
        channel.close()
