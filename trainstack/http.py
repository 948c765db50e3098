"""A server of one ASGI application on a picked loopback port, and the guard of what only this machine may ask."""

import asyncio
import contextlib
import functools
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, runtime_checkable

import h11
import uvicorn
from anyio.from_thread import start_blocking_portal
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from trainstack.json_bodies import google_error
from trainstack.loopback import foreign

_IDENTITY = re.compile(rb"\r\ntransfer-encoding:[ \t]*identity[ \t]*(?=\r\n|\Z)", re.IGNORECASE)
_ORIGINS = frozenset({b"host", b"origin", b"sec-fetch-site"})
"""The headers that `foreign` reads."""
_CONNECTION = "trainstack.http.connection"
_GRACE_S = 3
_IDLE_S = 600
"""How long a connection may be idle. A client that pauses for longer may send its next request into a closed
connection.
"""
_HEAD_S = 60.0
"""How long a connection may take to send a request's first lines, from its beginning or from their first byte."""
_MOST_WAITING = 500
"""Connections of a server without a request: half of the 1024 files that a process may usually open."""
_CLOSING_POLL_S = 0.005

_Running = TypeVar("_Running")


class LoopbackOnly:
    """An ASGI application that answers 403 to requests that do not address this machine by a loopback name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        texts = (
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in scope.get("headers", ())
            if name in _ORIGINS
        )
        if scope["type"] == "http" and (fault := foreign(scope["method"], texts)):
            await google_error(403, fault, reason="forbidden", status="PERMISSION_DENIED")(
                scope, receive, send
            )
            return
        with contextlib.suppress(ClientDisconnect):  # the client is gone
            await self._app(scope, receive, send)


class Server:
    """One ASGI application on one loopback port, inside the running event loop.

    The port is bound on construction, so `url` is known before `start`, and no other process can take it.
    Signal handlers stay as they are: the process's main program decides what Ctrl-C does.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        listener: socket.socket | None = None,
        most_connections: int | None = None,
        most_waiting: int = _MOST_WAITING,
        head_within_s: float = _HEAD_S,
    ) -> None:
        """Bind the port; 0 picks a free one. A `listener` is used instead, and closed with the server.

        Connections beyond `most_connections` at once are closed unanswered; None for no limit. Beyond `most_waiting`
        without a request, an older one is closed for each new one. A connection is closed if the head of its first request
        is not complete within `head_within_s`, or that of a later one so long after its first byte.

        Raises:
            OSError: the port is taken.
        """
        self._socket = listener or socket.create_server((host, port), backlog=512)
        # Connections inherit this. asyncio does not set it here, and every response would wait 40 ms for a
        # delayed ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self._server = _Quiet(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                http=functools.partial(  # type: ignore[arg-type]  # called as a class is
                    _Connection, (most_connections, most_waiting, head_within_s)
                ),
                ws="none",
                proxy_headers=False,
                timeout_keep_alive=_IDLE_S,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Start, and return the URL once the server answers."""
        self._serving = asyncio.create_task(
            self._server.serve(sockets=[self._socket]), name=f"http {self.url}"
        )
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait({self._serving, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            await self._serving
            raise RuntimeError(f"the server on {self.url} ended before it answered; its log says why")
        return self.url

    async def stop(self) -> None:
        """Finish requests in flight for at most 3 s, then close. Safe to call twice, and before `start`."""
        self._server.end()
        serving, self._serving = self._serving, None
        if serving is not None:
            await serving
        self._socket.close()


class _Connection(H11Protocol):
    """A connection that an application finds in its scope's state; see `cut`.

    Without a request, it makes room for newer ones, and it may not be half-way through a request's head for long. While it
    sends a body or waits for an answer, nothing ends it.
    """

    waits_since = 0.0
    """For a request, by the loop's clock; 0 while there is one."""
    has_asked = False
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, bounds: tuple[int | None, int, float], *arguments: Any, **more: Any) -> None:
        """`bounds` are `most_connections`, `most_waiting` and `head_within_s` of `Server`."""
        super().__init__(*arguments, **more)
        self._most_connections, self._most_waiting, self._head_within_s = bounds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn writes it
        super().connection_made(transport)
        self.app_state = {**self.app_state, _CONNECTION: transport}
        if self._most_connections is not None and len(self.connections) > self._most_connections:
            transport.abort()
            return
        self._make_room()
        self.waits_since = self.loop.time()
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        # TensorFlow's client sends `Transfer-Encoding: identity`, which has no effect and which h11 refuses.
        # A request begins where h11 is idle; libcurl sends its head in one piece.
        if self.conn.their_state is h11.IDLE:
            head, end, body = data.partition(b"\r\n\r\n")
            data = _IDENTITY.sub(b"", head) + end + body
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self.has_asked = True
            self._stop_waiting()
        elif self.conn.their_state is h11.IDLE and self._deadline is None:
            self._expect_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # or the next request had arrived already
            self.waits_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection. It no longer counts, although uvicorn keeps it until the loop's next iteration."""
        self._stop_waiting()
        self.transport.abort()

    def _make_room(self) -> None:
        """Close the oldest connection that waits, first of those that have never had a request."""
        waiting = [peer for peer in self.connections if isinstance(peer, _Connection) and peer.waits_since]
        if len(waiting) >= self._most_waiting:
            min(waiting, key=lambda peer: (peer.has_asked, peer.waits_since)).give_up()

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(self._head_within_s, self.give_up)

    def _stop_waiting(self) -> None:
        self.waits_since = 0.0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def cut(scope: Scope) -> None:
    """Close a request's connection, as a broken network does; the client gets no response.

    Raises:
        KeyError: the application is not served by `Server`.
    """
    scope["state"][_CONNECTION].abort()


class _Quiet(uvicorn.Server):
    """A uvicorn server that signals when it is ready, installs no signal handler, and stops at once when asked.

    uvicorn checks ten times a second whether it should stop, then waits as long for its connections to close.
    A stack has a server for each service, and stops them one after the other.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._must_stop = asyncio.Event()

    def end(self) -> None:
        """Let `serve` return. Safe to call twice, and before `serve`."""
        self.should_exit = True
        self._must_stop.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # each tick renews the `Date` of responses, in whole seconds
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._must_stop.wait(), 1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A connection accepted just now is in none of uvicorn's sets yet, and asyncio would lose it if its
        # server were closed first (https://github.com/python/cpython/issues/109564).
        for listener in sockets or []:
            asyncio.get_running_loop().remove_reader(listener)
        await _run_scheduled()
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:
                    for connection in list(self.server_state.connections):
                        connection.shutdown()
                    await asyncio.sleep(_CLOSING_POLL_S)
        for task in self.server_state.tasks:
            task.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await _run_scheduled()
        await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run_scheduled() -> None:
    """Let the loop open or close the connections' transports: asyncio takes up to three iterations for either."""
    for _ in range(3):
        await asyncio.sleep(0)


@runtime_checkable
class LiveService(Protocol):
    """An ASGI application with a lifecycle: started before its first request, stopped after its last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...
    async def start(self, url: str = ...) -> None: ...
    async def stop(self) -> None: ...


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, *, port: int = 0) -> AsyncIterator[str]:
    """Serve the application while the block runs; yields its URL. A `LiveService` is started and stopped with it."""
    async with contextlib.AsyncExitStack() as running:
        if isinstance(app, LiveService):
            running.push_async_callback(app.stop)
        server = Server(app, port=port)
        running.push_async_callback(server.stop)
        if isinstance(app, LiveService):
            await app.start(server.url)
        yield await server.start()


@contextlib.contextmanager
def in_thread(run: Callable[[], AbstractAsyncContextManager[_Running]]) -> Iterator[_Running]:
    """Run `run` in an event loop on a separate thread until the block ends; yields what it yields.

    `run` is called and entered in that thread. Its failures to start and to stop are raised here.
    """
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(portal.call(run)) as running,
    ):
        yield running
