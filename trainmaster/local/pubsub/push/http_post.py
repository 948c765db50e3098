"""One HTTP POST on the event loop, which a push delivery is; cancelling it closes the connection."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import h11

_READ = 65536


async def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """The status of the answer, whose body is read and dropped.

    A connection per request: the endpoint may be restarted between two deliveries, and a push must not fail on a
    connection that died unnoticed.

    Raises:
        OSError: nobody listens, or the connection broke.
        h11.RemoteProtocolError: what answered does not speak HTTP.
    """
    parts = urlsplit(url)
    secure = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure)
    try:
        connection = h11.Connection(h11.CLIENT)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = {
            "host": parts.netloc.rpartition("@")[2],
            "connection": "close",
            "content-length": str(len(body)),
        }
        request = h11.Request(method="POST", target=target, headers=list({**lines, **headers}.items()))
        for event in (request, h11.Data(data=body), h11.EndOfMessage()):
            writer.write(connection.send(event) or b"")
        await writer.drain()
        return await _status(connection, reader)
    finally:
        writer.transport.abort()  # the request is answered, or given up: nothing is left to be sent
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _status(connection: h11.Connection, reader: asyncio.StreamReader) -> int:
    status = 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
            return status
