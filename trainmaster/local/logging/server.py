"""The emulator as a whole: an ASGI application, a state folder, and the sinks' tasks."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

from starlette.types import ASGIApp

from trainmaster.local.http import LoopbackOnly, in_thread, serving
from trainmaster.local.injections import Injections
from trainmaster.local.injections.http import WithInjections
from trainmaster.local.logging.app import create_app
from trainmaster.local.logging.entry import EntryError
from trainmaster.local.logging.injections import named, subjects
from trainmaster.local.logging.outbox import Outbox, TopicPublisher
from trainmaster.local.logging.service import Service
from trainmaster.local.logging.store import Store

RETENTION_S = 30 * 24 * 3600
"""As long as the service's own default bucket keeps entries."""


class Logging:
    """Cloud Logging for the official HTTP client and gcloud, with its state in one folder.

    Serve `app` between `start` and `stop`, all in one event loop; `write` may be called from any thread.
    """

    def __init__(
        self,
        *,
        dir: Path | str,  # noqa: A002  # the name every emulator of the stack uses
        publisher_target: str | None = None,
        injections: Injections | None = None,
    ) -> None:
        """Open the state.

        `publisher_target` is the `host:port` of Pub/Sub; without it PUBSUB_EMULATOR_HOST is asked when first needed.
        `injections` are shared with other emulators; its own when None.

        Raises:
            StateInUseError: another emulator runs on this folder.
        """
        self._store = Store(Path(dir))
        injections = injections or Injections()
        self._outbox = Outbox(self._store, TopicPublisher(publisher_target), injections)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service = Service(self._store, routed=self._wake, sinks_changed=self._follow)
        self.app: ASGIApp = LoopbackOnly(
            WithInjections(
                app=create_app(self._service, self.stats),
                injections=injections,
                service="logging",
                named=named,
                subjects=subjects,
            )
        )

    async def start(self) -> None:
        """Begin to deliver what sinks owe."""
        self._loop = asyncio.get_running_loop()
        self._store.drop_before(time.time_ns() - RETENTION_S * 1_000_000_000)
        self._outbox.follow(self._service.sinks)

    async def stop(self) -> None:
        """Stop delivering and close the state."""
        self._loop = None
        await self._outbox.stop()
        self._store.close()

    def write(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Keep the entries, as `entries:write` does; on disk, sinks included, when this returns.

        Raises:
            EntryError: at least one entry is faulty; none was kept.
        """
        written = self._service.write(entries)
        if written.faults:
            raise EntryError(
                "; ".join(f"entries[{index}]: {fault}" for index, fault in written.faults.items())
            )

    def stats(self) -> dict[str, object]:
        """How many entries there are, and how each sink is doing: owed, published, its last error."""
        owing = self._store.owing()
        sinks = [
            {
                "name": name,
                "topic": sink.topic,
                "owed": owing.get(name, 0),
                **(vars(account) if (account := self._outbox.accounts.get(name)) else {}),
            }
            for name, sink in list(self._service.sinks.items())
        ]
        return {"entries": self._store.count(), "sinks": sinks}

    def _wake(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._outbox.wake)

    def _follow(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self._outbox.follow(self._service.sinks))


@contextlib.contextmanager
def serve(dir: Path | str, pubsub: str | None = None, *, port: int = 0) -> Iterator[str]:  # noqa: A002  # as above
    """The URL of an emulator that runs in a thread of its own until the block ends; `pubsub` is `host:port`."""

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[str]:
        async with serving_logging(dir, pubsub, port=port) as url:
            yield url

    with in_thread(running) as url:
        yield url


@contextlib.asynccontextmanager
async def serving_logging(dir: Path | str, pubsub: str | None = None, *, port: int = 0) -> AsyncIterator[str]:  # noqa: A002  # as above
    """The URL of an emulator in this event loop, until the block ends."""
    emulator = Logging(dir=dir, publisher_target=pubsub)
    try:
        await emulator.start()
        async with serving(emulator.app, port=port) as url:
            yield url
    finally:
        await emulator.stop()
