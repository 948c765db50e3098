"""Runs the console on a loopback port."""

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trainmaster.client.context import Context
from trainmaster.web.app import make_app
from trainmaster.web.console import LOCAL_POLL_S
from trainmaster.web.iap import IapDoor
from trainmaster.web.live import Streams
from trainmaster.web.rendering import environment
from trainmaster.web.source import ConsoleSource

HOST = "127.0.0.1"
_GRACE_S = 1
REQUEST_S = 5.0
"""How long a client may take to send a whole request. The largest form has 64 KiB."""
WAITING_MAX = 100
"""Connections that have no whole request, idle ones included. A browser opens six."""


def serve(
    choose: Callable[[], Context],
    *,
    listener: socket.socket,
    writable: bool,
    is_secret: bool,
    token: str | None = None,
    door: IapDoor | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` gets the address to open, with the token if reading needs it.

    `choose`, `writable` and `door` are those of `ConsoleSource`; `is_secret` that of `make_app`; `token` is the session's, by default a
    new one.
    """
    token = token or secrets.token_urlsafe(24)
    source = ConsoleSource(choose, writable=writable, door=door)
    streams = Streams(pause_s=LOCAL_POLL_S)
    app = make_app(source, token=token, is_secret=is_secret, streams=streams)
    if door is not None and door.in_front is not None:
        app = door.in_front(app)
    address = f"http://{HOST}:{listener.getsockname()[1]}/"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", http=_Impatient, timeout_graceful_shutdown=_GRACE_S, ws="none",
        h11_max_incomplete_event_size=64 * 1024, limit_concurrency=200,
    )  # fmt: skip
    ready(f"{address}?key={token}" if is_secret and door is None else address)
    threading.Thread(target=_warm_up, args=[source], name="warm up", daemon=True).start()
    _Server(config, streams).run(sockets=[listener])


class _Impatient(H11Protocol):
    """A connection that is closed if its request does not arrive in time, or for newer ones if too many wait.

    Otherwise half-sent requests would count towards `limit_concurrency` for as long as their client likes. All clients
    have the address 127.0.0.1, so a limit for each address would protect none of them: instead, those that send nothing
    make room for those that send.
    """

    waits_since = 0.0
    """By the loop's clock; 0 while a request is answered."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn writes it
        super().connection_made(transport)
        self._wait_for_request()
        others = self.connections
        waiting = [other for other in others if isinstance(other, _Impatient) and other.waits_since]
        if len(waiting) > WAITING_MAX:
            min(waiting, key=lambda each: each.waits_since).give_up()

    def give_up(self) -> None:
        """Close the connection. It no longer counts, although uvicorn keeps it until the loop's next iteration."""
        self._stop_waiting()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_progress()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # and begins the next request, if it has arrived already
        self._note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _note_progress(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._stop_waiting()
        elif not self.waits_since:
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        self._stop_waiting()
        self.waits_since = self.loop.time()
        self._timer = self.loop.call_later(REQUEST_S, self.give_up)

    def _stop_waiting(self) -> None:
        self.waits_since = 0.0
        if self._timer is not None:
            self._timer.cancel()


class _Server(uvicorn.Server):
    """Ends the streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)


def _warm_up(source: ConsoleSource) -> None:
    """Import and compile what the first page needs. Reads nothing."""
    environment()
    with suppress(Exception):  # the first page says why
        _ = source.clients.storage
