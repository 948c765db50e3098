"""The complete emulator: a port, a state folder, and background tasks.

Calls are served by grpc.aio, because a streaming pull is open as long as its subscriber lives and would hold
a thread each. Messages are plain protobuf classes: the official wrappers take five to eight times as long.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from trainstack.http import in_thread
from trainstack.iam.principals import Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.pubsub.api.rpc import handlers_of
from trainstack.pubsub.policies import apply_policies
from trainstack.pubsub.service import PubsubService
from trainstack.pubsub.store import PubsubStore
from trainstack.tasks import cancel_all

# Above the 10 MB of a publish request, so that the emulator itself refuses what is too large.
_MAX_REQUEST_BYTES = 16 * 1024 * 1024
_RETENTION_SWEEP_S = 60.0


class PubSub:
    """Pub/Sub for the official clients, on loopback, with its state in one folder.

    After a kill at any time and a restart on the same folder, it still has every topic, subscription and
    unacknowledged message whose call had returned; leased messages are ready again at once.
    """

    def __init__(
        self,
        *,
        dir: Path | str,  # noqa: A002  # the name every emulator of the stack uses
        injections: Injections | None = None,
        tokens: Tokens | None = None,
        grants: Grants | None = None,
    ) -> None:
        """`injections` are shared with other emulators; None disables them.

        `tokens` identify the principals of calls; without them, every call is the local user's. `grants` decide what
        accounts may call; without them, every method.
        """
        self._folder = Path(dir)
        self._injections = injections or Injections()
        self._tokens, self._grants = tokens, grants
        self._server: Any = None  # grpcio ships no types
        self._service: PubsubService | None = None
        self._sweeping: asyncio.Task[None] | None = None

    def bind(self, port: int = 0) -> int:
        """Open the state and bind the port, before `start`; return it. 0 picks a free one. Call it in the event loop.

        Raises:
            StateInUseError: another emulator uses this folder.
            OSError: the port is taken; another may be bound.
        """
        if self._service is None:
            self._service = PubsubService(PubsubStore(self._folder), self._injections, self._grants)
            apply_policies(self._service)
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", _MAX_REQUEST_BYTES),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
            ]
        )
        server.add_generic_rpc_handlers(handlers_of(self._service, self._tokens))
        try:
            bound = int(server.add_insecure_port(f"127.0.0.1:{port}"))
        except RuntimeError as fault:
            raise OSError(f"Port {port} of 127.0.0.1 is taken.") from fault
        self._server = server
        return bound

    async def start(self) -> None:
        """Serve the bound port."""
        await self._server.start()
        if self._service is not None:
            self._sweeping = asyncio.create_task(_sweep(self._service))

    async def stop(self) -> None:
        """Close every stream and the state. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)  # streams never end by themselves; every other call is short
        sweeping, self._sweeping = self._sweeping, None
        if sweeping is not None:
            await cancel_all([sweeping])
        if self._service is not None:
            self._service.close()


async def _sweep(service: PubsubService) -> None:
    while True:
        service.drop_outlived()
        await asyncio.sleep(_RETENTION_SWEEP_S)


@asynccontextmanager
async def emulate(dir: Path | str, port: int = 0, injections: Injections | None = None) -> AsyncIterator[str]:  # noqa: A002  # as above
    """Run an emulator in this event loop until the block ends; yields its `host:port`."""
    emulator = PubSub(dir=dir, injections=injections)
    try:
        bound = emulator.bind(port)
        await emulator.start()
        yield f"127.0.0.1:{bound}"
    finally:
        await emulator.stop()


def serve(
    dir: Path | str,  # noqa: A002  # as above
    *,
    port: int = 0,
    injections: Injections | None = None,
) -> AbstractContextManager[str]:
    """As `emulate`, in a separate thread."""
    return in_thread(lambda: emulate(dir, port, injections))
