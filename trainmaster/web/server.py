"""Runs the console on a loopback port."""

import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from trainmaster.client.context import Context
from trainmaster.web.app import make_app
from trainmaster.web.console import LOCAL_POLL_S
from trainmaster.web.live import Streams
from trainmaster.web.rendering import environment
from trainmaster.web.source import Source

HOST = "127.0.0.1"
_GRACE_S = 1


def listening_socket(port: int) -> socket.socket:
    """A socket that listens on the port; 0 for any free one.

    Raises:
        OSError: the port is in use.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        raise
    listener.listen(128)
    return listener


def serve(
    choose: Callable[[], Context],
    *,
    listener: socket.socket,
    writable: bool,
    is_secret: bool,
    token: str | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` gets the address to open, with the token if reading needs it.

    `choose` and `writable` are those of `Source`; `is_secret` that of `make_app`; `token` is the session's, by default a
    new one.
    """
    token = token or secrets.token_urlsafe(24)
    source = Source(choose, writable=writable)
    streams = Streams(pause_s=LOCAL_POLL_S)
    app = make_app(source, token=token, is_secret=is_secret, streams=streams)
    address = f"http://{HOST}:{listener.getsockname()[1]}/"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", http="h11", timeout_graceful_shutdown=_GRACE_S, ws="none",
        h11_max_incomplete_event_size=64 * 1024, limit_concurrency=200,
    )  # fmt: skip
    ready(f"{address}?key={token}" if is_secret else address)
    threading.Thread(target=_warm_up, args=[source], name="warm up", daemon=True).start()
    _Server(config, streams).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends the streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)


def _warm_up(source: Source) -> None:
    """Import and compile what the first page needs. Reads nothing."""
    environment()
    with suppress(Exception):  # the first page says why
        _ = source.clients.storage
