"""The complete emulator: an ASGI application, a state folder, and the delivery of sinks' messages."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.http import in_thread, serving
from trainstack.iam.authentication import guarded_app
from trainstack.iam.principals import Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.injections.active import injected_send
from trainstack.injections.http import WithInjections
from trainstack.logging.api import application
from trainstack.logging.entry import EntryError
from trainstack.logging.service import RETENTION_NS, LogService
from trainstack.logging.store import LogStore
from trainstack.publisher import Publish, publisher_to
from trainstack.tasks import cancel_all


class Logging:
    """Cloud Logging for the official HTTP client and gcloud, with its state in one folder.

    An ASGI application, active between `start` and `stop`, all in one event loop; `write` may be called from
    any thread.
    """

    def __init__(
        self,
        *,
        dir: Path | str,  # noqa: A002  # the name every emulator of the stack uses
        publish: Publish | None = None,
        injections: Injections | None = None,
        tokens: Tokens | None = None,
        grants: Grants | None = None,
    ) -> None:
        """Open the state.

        Without `publish`, sinks' messages are kept until a later start has one. `injections` are shared with
        other emulators; None creates new ones. `tokens` identify the principals of requests; without them,
        every request is the local user's. `grants` decide what accounts may call; without them, every method.

        Raises:
            StateInUseError: another emulator uses this folder.
        """
        self._store = LogStore(Path(dir))
        self._service = LogService(self._store)
        injections = injections or Injections()
        self._send = None
        if publish:
            sink = self._service.sink
            self._send = injected_send(
                injections,
                "logging.export",
                lambda name, messages: publish(sink(name).topic, messages),
                lambda name, _messages: (name, sink(name).topic),
            )
        self._exporting: asyncio.Task[None] | None = None
        self._app: ASGIApp = guarded_app(
            WithInjections(
                app=application(self._service, grants),
                injections=injections,
                service="logging",
            ),
            tokens,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def start(self, _url: str = "") -> None:
        """Start delivering sinks' messages."""
        self._store.drop_before(time.time_ns() - RETENTION_NS)
        if self._send:
            self._exporting = asyncio.create_task(self._service.outbox.run(self._send))

    async def stop(self) -> None:
        """Stop delivering and close the state."""
        task, self._exporting = self._exporting, None
        if task:
            await cancel_all([task])
        self._store.close()

    def write(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Store the entries, as `entries:write` does; they and the sinks' messages are on disk when this returns.

        Raises:
            EntryError: some entries are invalid; the others are stored.
        """
        if faults := self._service.write(entries, partial_success=True):
            raise EntryError("; ".join(f"entries[{index}]: {fault}" for index, fault in faults.items()))


@contextlib.asynccontextmanager
async def emulate(dir: Path | str, pubsub: str | None = None, *, port: int = 0) -> AsyncIterator[str]:  # noqa: A002  # as above
    """Run an emulator in this event loop until the block ends; yields its URL. `pubsub` is `host:port`."""
    with publisher_to(pubsub) as publish:
        async with serving(Logging(dir=dir, publish=publish), port=port) as url:
            yield url


def serve(dir: Path | str, pubsub: str | None = None, *, port: int = 0) -> AbstractContextManager[str]:  # noqa: A002  # as above
    """As `emulate`, in a separate thread."""
    return in_thread(lambda: emulate(dir, pubsub, port=port))
