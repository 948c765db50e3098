"""What sinks owe, published to Pub/Sub through the official client, at least once.

A row leaves the outbox only after Pub/Sub has answered with a message id; a kill in between publishes it again.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import grpc
from google.api_core.exceptions import InvalidArgument
from google.pubsub_v1 import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.types import PubsubMessage

from trainmaster.local.injections import Call, Injections
from trainmaster.local.injections.apply import done
from trainmaster.local.injections.injection import SENDING_KINDS
from trainmaster.local.logging.instants import format_instant, now_ns
from trainmaster.local.logging.sinks import Sink
from trainmaster.local.logging.store import Owed, Store

_LOG = logging.getLogger(__name__)

_BATCH = 100
# Well below the 10 MB of a publish request even when every entry has its full 256 KiB.
_BATCH_BYTES = 4_000_000
_PUBLISH_TIMEOUT_S = 10.0
FIRST_BACKOFF_S = 0.25
MAX_BACKOFF_S = 15.0


class NoPublisherError(RuntimeError):
    """Nobody said where Pub/Sub is."""


class TopicPublisher:
    """The official client on a plain channel, connected when first used.

    Blocking, for a worker thread: a Pub/Sub emulator in this very event loop can answer meanwhile.
    """

    def __init__(self, target: str | None) -> None:
        """`target` is `host:port`; without it PUBSUB_EMULATOR_HOST is asked when first used."""
        self._target = target
        self._client: PublisherClient | None = None

    def publish(self, topic: str, owed: Sequence[Owed]) -> None:
        """Return once Pub/Sub has the messages.

        Raises:
            NoPublisherError: there is no Pub/Sub to talk to.
            google.api_core.exceptions.GoogleAPICallError: Pub/Sub refused, or could not be reached in 10 s.
        """
        messages = [
            PubsubMessage(
                data=one.body.encode(),
                attributes={"logging.googleapis.com/timestamp": format_instant(one.timestamp_ns)},
            )
            for one in owed
        ]
        self._connected().publish(topic=topic, messages=messages, retry=None, timeout=_PUBLISH_TIMEOUT_S)

    def _connected(self) -> PublisherClient:
        if self._client is None:
            target = self._target or os.environ.get("PUBSUB_EMULATOR_HOST")
            if not target:
                raise NoPublisherError("no Pub/Sub: give publisher_target or set PUBSUB_EMULATOR_HOST")
            channel = grpc.insecure_channel(target)
            self._client = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.transport.close()


@dataclass(kw_only=True)
class Account:
    """How a sink is doing; failures count in a row."""

    published: int = 0
    dropped: int = 0
    failures: int = 0
    last_error: str = ""
    last_error_time: str = ""


@dataclass(kw_only=True)
class _Route:
    """A sink's delivering: `new` says that it owes something, `again` that a pause after a failure is over."""

    sink: Sink
    new: asyncio.Event = field(default_factory=asyncio.Event)
    again: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class Outbox:
    """One delivering task per sink, so that a broken one holds up no other."""

    def __init__(self, store: Store, publisher: TopicPublisher, injections: Injections) -> None:
        self._store = store
        self._injections = injections
        self._publisher = publisher
        self._routes: dict[str, _Route] = {}
        self.accounts: dict[str, Account] = {}

    def follow(self, sinks: Mapping[str, Sink]) -> None:
        """Deliver for exactly these sinks from now on; a sink in a pause is tried again at once."""
        for name in set(self._routes) - set(sinks):
            self._routes.pop(name).cancel()
            self.accounts.pop(name, None)
        for name, sink in sinks.items():
            if (route := self._routes.get(name)) is None:
                self.accounts[name] = Account()
                route = self._routes[name] = _Route(sink=sink)
                route.task = asyncio.create_task(self._deliver(name, route), name=f"sink {name}")
            route.sink = sink
            route.again.set()

    def wake(self) -> None:
        """There may be something new; from the event loop."""
        for route in self._routes.values():
            route.new.set()

    async def stop(self) -> None:
        """Break off; what was not answered for is published again next time."""
        tasks = [route.task for route in self._routes.values() if route.task is not None]
        self._routes.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._publisher.close()

    async def _deliver(self, name: str, route: _Route) -> None:
        account = self.accounts[name]
        while True:
            route.new.clear()
            route.again.clear()
            batch = _within(self._store.owed(name, limit=_BATCH))
            if not batch:
                await route.new.wait()
            elif not await self._publish(route.sink, account, batch):
                pause_s = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(account.failures - 1, 20))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(route.again.wait(), pause_s)

    async def _publish(self, sink: Sink, account: Account, batch: Sequence[Owed]) -> bool:
        """Whether the batch is off our hands."""
        try:
            await asyncio.to_thread(self._export, sink, batch)
        except InvalidArgument as fault:
            # Pub/Sub will never take it; the others of the batch must not wait for it for ever.
            if len(batch) > 1:
                return all([await self._publish(sink, account, [one]) for one in batch])
            self._note(sink, account, f"dropped an entry that Pub/Sub refuses: {fault.message}")
            account.dropped += 1
        except Exception as fault:  # whatever it is, the entries stay owed and the sink goes on trying
            account.failures += 1
            self._note(sink, account, str(fault) or type(fault).__name__)
            return False
        else:
            account.published += len(batch)
            account.failures = 0
        self._store.settle(batch)
        return True

    def _export(self, sink: Sink, batch: Sequence[Owed]) -> None:
        call = Call(at="logging.export", subjects=(sink.full_name, sink.topic), kinds=SENDING_KINDS)
        done(self._injections, call, lambda: self._publisher.publish(sink.topic, batch), lost=None)

    @staticmethod
    def _note(sink: Sink, account: Account, error: str) -> None:
        if error != account.last_error or account.failures == 1:
            _LOG.error("sink %s cannot publish to %s: %s", sink.full_name, sink.topic, error)
        account.last_error, account.last_error_time = error, format_instant(now_ns())


def _within(owed: Sequence[Owed]) -> list[Owed]:
    """As many from the front as fit into one request; always the first."""
    batch: list[Owed] = []
    size = 0
    for one in owed:
        size += len(one.body)
        if batch and size > _BATCH_BYTES:
            break
        batch.append(one)
    return batch
