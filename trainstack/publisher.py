"""Publishes through the official Pub/Sub client, which is imported and connected for the first message."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from google.pubsub_v1 import PublisherClient

Message: TypeAlias = tuple[bytes, Mapping[str, str]]
"""Data and attributes."""

Publish: TypeAlias = Callable[[str, Sequence[Message]], None]
"""Publishes messages to a topic, `projects/P/topics/T`; called in a worker thread, may block.

Raises unless all of them were accepted."""

_TIMEOUT_S = 10.0


class Publisher:
    """A `Publish` for the Pub/Sub server at `host` (`host:port`), over the plaintext channel that emulators use."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._client: PublisherClient | None = None

    def __call__(self, topic: str, messages: Sequence[Message]) -> None:
        """Raises what the client raises: `google.api_core.exceptions.GoogleAPICallError`."""
        from google.pubsub_v1 import PubsubMessage

        self._connect().publish(
            topic=topic,
            messages=[PubsubMessage(data=data, attributes=dict(attributes)) for data, attributes in messages],
            timeout=_TIMEOUT_S,
            retry=None,  # the outbox retries, with its own backoff
        )

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            if client:
                client.transport.close()

    def _connect(self) -> "PublisherClient":
        import grpc
        from google.pubsub_v1 import PublisherClient
        from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

        with self._lock:
            if self._client is None:
                channel = grpc.insecure_channel(self._host)
                self._client = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
            return self._client


def publisher_to(host: str | None) -> AbstractContextManager[Publisher | None]:
    """A publisher to the Pub/Sub server at `host`, closed after the block; None without a host."""
    return contextlib.closing(Publisher(host)) if host else contextlib.nullcontext()
