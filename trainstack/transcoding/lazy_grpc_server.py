"""gRPC in front of a service, started for its first client."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainstack.transcoding.method import Services

if TYPE_CHECKING:
    from trainstack.transcoding.grpc_server import GrpcServer


class LazyGrpcServer:
    """A `GrpcServer` that is created on first use.

    Most stacks never need one, and its imports would slow every start by a tenth.
    """

    def __init__(self, *, base_url: str, services: Callable[[], Services]) -> None:
        """`services` may import modules; otherwise as `GrpcServer`."""
        self._base_url = base_url
        self._services = services
        self._server: GrpcServer | None = None
        self._stopped = False
        self._lock = asyncio.Lock()

    async def port(self) -> int:
        """The server's port; the first call starts it. 0 after `stop`."""
        async with self._lock:
            if self._server is None and not self._stopped:
                services = await asyncio.to_thread(self._import_services)
                from trainstack.transcoding.grpc_server import GrpcServer  # already imported

                self._server = GrpcServer(base_url=self._base_url, services=services)
                await self._server.start()
            return self._server.port if self._server else 0

    async def stop(self) -> None:
        """As `GrpcServer.stop`; safe to call if none was started."""
        async with self._lock:
            self._stopped = True
            server, self._server = self._server, None
            if server:
                await server.stop()

    def _import_services(self) -> Services:
        from trainstack.transcoding import grpc_server  # noqa: F401  # in a thread, for it takes a while

        return self._services()
