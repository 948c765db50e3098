"""gRPC in front of a service, from its first client on."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainmaster.local.transcoding.method import Services

if TYPE_CHECKING:
    from trainmaster.local.transcoding.grpc_server import GrpcServer


class LazyGrpcServer:
    """A `GrpcServer` that is made when it is first asked for.

    Most stacks never need one, and the packages that it imports would make every start slower by a tenth.
    """

    def __init__(self, *, base_url: str, services: Callable[[], Services]) -> None:
        """`services` may import what it needs; the rest is as for `GrpcServer`."""
        self._base_url = base_url
        self._services = services
        self._server: GrpcServer | None = None
        self._stopped = False
        self._lock = asyncio.Lock()

    async def port(self) -> int:
        """The port of the running server, which the first call starts; 0 after `stop`."""
        async with self._lock:
            if self._server is None and not self._stopped:
                services = await asyncio.to_thread(self._imported)
                from trainmaster.local.transcoding.grpc_server import GrpcServer  # imported by now

                self._server = GrpcServer(base_url=self._base_url, services=services)
                await self._server.start()
            return self._server.port if self._server else 0

    async def stop(self) -> None:
        """As `GrpcServer.stop`; safe to call where none was started."""
        async with self._lock:
            self._stopped = True
            server, self._server = self._server, None
            if server:
                await server.stop()

    def _imported(self) -> Services:
        from trainmaster.local.transcoding import grpc_server  # noqa: F401  # in a thread, for it takes a while

        return self._services()
