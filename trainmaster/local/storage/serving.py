"""The emulator on a port: inside a running event loop, or in a thread of its own."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

from trainmaster.local.http import Server, in_thread
from trainmaster.local.iam.grants import Grants
from trainmaster.local.storage.app import Storage
from trainmaster.local.storage.delivery import Publish


@asynccontextmanager
async def served(
    dir: Path | str,  # noqa: A002
    *,
    publish: Publish | None = None,
    port: int = 0,
    grants: Grants | None = None,
) -> AsyncIterator[str]:
    """The URL of an emulator over `dir`, served while the block runs. `port` 0 picks a free one."""
    storage = Storage(dir=dir, publish=publish, grants=grants)
    try:
        server = Server(storage, port=port)
        storage.url = server.url
        try:
            await storage.start()
            yield await server.start()
        finally:
            await server.stop()
    finally:
        await storage.stop()


def serve(dir: Path | str, *, publish: Publish | None = None, port: int = 0) -> AbstractContextManager[str]:  # noqa: A002
    """The URL of an emulator over `dir`, served in a thread of its own while the `with` block runs."""
    return in_thread(lambda: served(dir, publish=publish, port=port))
