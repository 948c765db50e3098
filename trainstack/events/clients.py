"""The official Pub/Sub clients, connected to one server without environment variables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient
from google.cloud.pubsub_v1.types import BatchSettings
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

_UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


@dataclass(frozen=True, kw_only=True)
class PubsubClients:
    """Clients of one server, over the plaintext channel that emulators use."""

    publisher: PublisherClient
    subscriber: SubscriberClient


@contextmanager
def clients_of(host: str) -> Iterator[PubsubClients]:
    """Clients of the Pub/Sub server at `host:port`, closed at the end."""
    channels = [grpc.insecure_channel(host, options=_UNLIMITED) for _ in range(2)]
    publisher = PublisherClient(
        batch_settings=BatchSettings(max_latency=0.0),
        transport=PublisherGrpcTransport(channel=channels[0]),
    )
    subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channels[1]))
    try:
        yield PubsubClients(publisher=publisher, subscriber=subscriber)
    finally:
        publisher.stop()
        subscriber.close()
        for channel in channels:
            channel.close()
