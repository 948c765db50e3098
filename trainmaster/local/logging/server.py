"""The emulator as a whole: an ASGI application, a state folder, and what the sinks owe."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from trainmaster.local.http import in_thread, serving
from trainmaster.local.iam.authentication import guarded
from trainmaster.local.iam.principals import Tokens
from trainmaster.local.injections import Injections
from trainmaster.local.injections.http import WithInjections
from trainmaster.local.logging.api import application
from trainmaster.local.logging.entry import EntryError
from trainmaster.local.logging.injections import exporting, named, subjects
from trainmaster.local.logging.service import Service
from trainmaster.local.logging.store import Store
from trainmaster.local.publisher import Publish, publisher_to
from trainmaster.local.tasks import cancel_all

RETENTION_S = 30 * 24 * 3600
"""As long as the service's own default bucket keeps entries."""


class Logging:
    """Cloud Logging for the official HTTP client and gcloud, with its state in one folder.

    An ASGI application, live between `start` and `stop`, all in one event loop; `write` may be called from any thread.
    """

    def __init__(
        self,
        *,
        dir: Path | str,  # noqa: A002  # the name every emulator of the stack uses
        publish: Publish | None = None,
        injections: Injections | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Open the state.

        Without `publish`, what sinks owe is kept until a later start has one.
        `injections` are shared with other emulators; its own when None. `tokens` name the principals of requests;
        without, every request is the local user's.

        Raises:
            StateInUseError: another emulator runs on this folder.
        """
        self._store = Store(Path(dir))
        self._service = Service(self._store)
        injections = injections or Injections()
        self._send = exporting(publish, injections, self._service.topic_of) if publish else None
        self._exporting: asyncio.Task[None] | None = None
        self._app: ASGIApp = guarded(
            WithInjections(
                app=application(self._service),
                injections=injections,
                service="logging",
                named=named,
                subjects=subjects,
            ),
            tokens,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def start(self, _url: str = "") -> None:
        """Begin to deliver what sinks owe."""
        self._store.drop_before(time.time_ns() - RETENTION_S * 1_000_000_000)
        if self._send:
            self._exporting = asyncio.create_task(self._service.outbox.run(self._send))

    async def stop(self) -> None:
        """Stop delivering and close the state."""
        task, self._exporting = self._exporting, None
        if task:
            await cancel_all([task])
        self._store.close()

    def write(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Keep the entries, as `entries:write` does; on disk, sinks included, when this returns.

        Raises:
            EntryError: at least one entry is faulty; none was kept.
        """
        if faults := self._service.write(entries):
            raise EntryError("; ".join(f"entries[{index}]: {fault}" for index, fault in faults.items()))


@contextlib.asynccontextmanager
async def served(dir: Path | str, pubsub: str | None = None, *, port: int = 0) -> AsyncIterator[str]:  # noqa: A002  # as above
    """The URL of an emulator in this event loop, until the block ends; `pubsub` is `host:port`."""
    with publisher_to(pubsub) as publish:
        async with serving(Logging(dir=dir, publish=publish), port=port) as url:
            yield url


def serve(dir: Path | str, pubsub: str | None = None, *, port: int = 0) -> AbstractContextManager[str]:  # noqa: A002  # as above
    """As `served`, in a thread of its own."""
    return in_thread(lambda: served(dir, pubsub, port=port))
