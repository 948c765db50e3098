"""The proxy: reads one CONNECT, authenticates the client, then copies bytes between it and a service.

It copies bytes and does not read HTTP, or it would have to keep up with the habits of every client.
"""

import asyncio
import base64
import binascii
import contextlib
import functools
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from trainstack.gateway.authority import Authority
from trainstack.gateway.egress import (
    CHUNK_BYTES,
    OwnAddressError,
    PlainRequest,
    addresses_elsewhere,
    close_writer,
    connect,
    join,
    open_stream,
    plain_request,
)
from trainstack.iam.principals import Tokens
from trainstack.loopback import GATEWAY_ADDRESS, LOOPBACK_HOSTS
from trainstack.tasks import cancel_all

_HEAD_WITHIN_S = 10.0
_MAX_CONNECTIONS = 2_000
_MAX_OF_A_NETWORK = 500
"""Less than all, so that one job cannot keep others from the gateway."""
_SERVICES = {
    "storage.googleapis.com": "storage",
    "www.googleapis.com": "storage",  # compiled into TensorFlow's tsl/platform/cloud/gcs_file_system.cc
    "pubsub.googleapis.com": "pubsub",
    "logging.googleapis.com": "logging",
    "monitoring.googleapis.com": "monitoring",
    "aiplatform.googleapis.com": "vertex",
}
"""The stack's name of the service behind each of Google's host names."""
_REGIONAL = re.compile(r"[a-z0-9-]+-aiplatform\.googleapis\.com")
_GOOGLE_API = re.compile(r"(?!(?:ajax|fonts|generativelanguage)\.)[a-z0-9.-]+\.googleapis\.com")
"""Hosts of Google's APIs; the exceptions do not concern Google Cloud's projects."""
_OTHERS = "iam"
"""The service that answers for the rest of Google's hosts, and refuses what it does not serve."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """The loopback ports of one service; 0 for a port that does not exist.

    `grpc` may be a function that returns the port and may start the server first.
    """

    http: int = 0
    grpc: int | Callable[[], Awaitable[int]] = 0

    async def port_of(self, protocol: str | None) -> int:
        """The port for a protocol as TLS negotiates it: gRPC's is `h2`."""
        if protocol != "h2":
            return self.http
        return self.grpc if isinstance(self.grpc, int) else await self.grpc()


class Gateway:
    """An HTTP proxy on a loopback port that accepts only CONNECT.

    For host names with a route, it terminates TLS and forwards plain text to the local service. All other
    connections pass through untouched, through the proxy named in this process's environment if there is one.
    From the networks of jobs it accepts http:// requests too, because they have no other way out, and refuses
    every address of this machine.
    A connection without a valid token as its password is refused with 407, so a web page on this machine,
    which can neither send CONNECT nor know a token, reaches nothing.
    """

    def __init__(
        self, *, authority: Authority, tokens: Tokens, own_hosts: Collection[tuple[str, int]] = ()
    ) -> None:
        """`own_hosts` are the hosts and ports that jobs' networks may reach though they may be this machine: package indexes."""
        self._authority = authority
        self._own_hosts = frozenset(own_hosts)
        self.forwarded_ports = sorted({port for host, port in own_hosts if host in LOOPBACK_HOSTS})
        """Those of `own_hosts` on loopback. No client asks a proxy for these, so jobs' networks have them too."""
        self.backends: dict[str, Backend] = {}
        """The services that are up, by name."""
        self._tokens = tokens
        self._server: asyncio.Server | None = None
        self._networks: set[asyncio.Server] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int = 0) -> int:
        """Start, and return the port; `port` 0 picks a free one.

        Raises:
            OSError: the port is taken.
        """
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", port, limit=CHUNK_BYTES, backlog=512
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def listen(self, listener: socket.socket) -> asyncio.Server:
        """Serve a job's network too, until the result is closed."""
        accept = functools.partial(self._accept, network=set())
        self._networks = {server for server in self._networks if server.is_serving()}
        server = await asyncio.start_server(accept, sock=listener, limit=CHUNK_BYTES, backlog=512)
        self._networks.add(server)
        return server

    async def forward(self, listener: socket.socket) -> asyncio.Server:
        """Connect a port of a job's network with the same one of this machine, until the result is closed."""
        port = listener.getsockname()[1]
        joined: set[asyncio.StreamWriter] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            joined.add(writer)
            with contextlib.suppress(OSError, TimeoutError):
                if len(joined) <= _MAX_OF_A_NETWORK:
                    await join(reader, writer, *await open_stream("127.0.0.1", port))
            joined.discard(writer)
            await close_writer(writer)

        return await asyncio.start_server(accept, sock=listener, limit=CHUNK_BYTES)

    async def stop(self) -> None:
        """Close the port, the listeners of networks and every connection."""
        servers, self._server, self._networks = [self._server, *self._networks], None, set()
        for server in servers:
            if server:
                server.close()
        await cancel_all(self._connections)

    async def _accept(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        network: "set[asyncio.Task[None]] | None" = None,
    ) -> None:
        """`network` has the connections from the same network of a job; None for a connection of this machine's."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine always runs in one
        groups = [(self._connections, _MAX_CONNECTIONS)]
        groups += [] if network is None else [(network, _MAX_OF_A_NETWORK)]
        for group, _most in groups:
            group.add(task)
        try:
            if exceeded := [most for group, most in groups if len(group) > most]:
                reason = f"at most {min(exceeded)} connections are allowed at once"
                await _refuse(writer, _RefusedError("503 Service Unavailable", reason))
            else:
                await self._serve(reader, writer, confined=network is not None)
        except _RefusedError as refused:
            with contextlib.suppress(OSError):
                await _refuse(writer, refused)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as fault:
            _log.debug("a connection ended: %s", fault)
        finally:
            for group, _most in groups:
                group.discard(task)
            await close_writer(writer)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, confined: bool
    ) -> None:
        """Raises `_RefusedError` before anything is answered."""
        asked = await _read_request(reader, plain=confined)
        if self._tokens.principal_of(asked.password) is None:
            reason = "is not a valid token: it is missing, or its replica's job has ended"
            raise _RefusedError(
                "407 Proxy Authentication Required", f"the password in the proxy's URL {reason}"
            )
        is_own = (asked.host, asked.port) in self._own_hosts
        backend = self.backends.get(_service_of(asked.host)) if asked.port == 443 and not is_own else None  # noqa: PLR2004  # https
        if backend:
            await self._terminate(asked, backend, reader, writer)
        else:
            await _tunnel(asked, reader, writer, far_only=confined and not is_own)

    async def _terminate(
        self, asked: "_Asked", backend: Backend, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await _answer(writer, "200 Connection established")
        await writer.start_tls(self._authority.context, ssl_handshake_timeout=_HEAD_WITHIN_S)
        protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        if not (port := await backend.port_of(protocol)):
            _log.warning("the local stack does not serve %s over %s", asked.host, protocol or "HTTP/1.1")
            return
        await join(reader, writer, *await open_stream("127.0.0.1", port, sender=(GATEWAY_ADDRESS, 0)))


def _service_of(host: str) -> str:
    """The service that answers for a host; empty for hosts other than Google's."""
    if _REGIONAL.fullmatch(host):
        return "vertex"
    return _SERVICES.get(host) or (_OTHERS if _GOOGLE_API.fullmatch(host) else "")


class _RefusedError(Exception):
    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A parsed CONNECT, or an http:// request with what it asks; `password` is empty if it has none."""

    host: str
    port: int
    password: str
    request: PlainRequest | None = None


async def _read_request(reader: asyncio.StreamReader, *, plain: bool) -> _Asked:
    """`plain`: whether http:// requests are accepted.

    Raises:
        _RefusedError: the request is not one that this proxy accepts.
        asyncio.IncompleteReadError: the client disconnected.
    """
    try:
        async with asyncio.timeout(_HEAD_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _RefusedError(
            "431 Request Header Fields Too Large", f"the request's head exceeds {CHUNK_BYTES} bytes"
        ) from None
    line, *fields = head.decode("latin-1").split("\r\n")
    method, _, rest = line.partition(" ")
    host, _, port = rest.partition(" ")[0].rpartition(":")
    if plain and (request := plain_request(line, fields)):
        return _Asked(host=request.host, port=request.port, password=_password(fields), request=request)
    if method != "CONNECT":
        raise _RefusedError(
            "405 Method Not Allowed", "this proxy accepts only CONNECT: use https:// addresses"
        )
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 1 << 16:
        raise _RefusedError("400 Bad Request", f"CONNECT expects host:port, found {rest!r}")
    return _Asked(host=host.strip("[]").lower(), port=int(port), password=_password(fields))


def _password(fields: list[str]) -> str:
    for field in fields:
        name, _, value = field.partition(":")
        scheme, _, credentials = value.strip().partition(" ")
        if name.lower() == "proxy-authorization" and scheme.lower() == "basic":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
    return ""


async def _tunnel(
    asked: _Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, far_only: bool
) -> None:
    """Connect the client with a host outside the stack; with `far_only` outside this machine. Raises `_RefusedError`."""
    try:
        addresses = await addresses_elsewhere(asked.host, asked.port) if far_only else []
        if asked.request:
            far = await asked.request.send(addresses)
        else:
            far = await connect(asked.host, asked.port, addresses)
    except OwnAddressError as refusal:
        raise _RefusedError("403 Forbidden", str(refusal)) from None
    except (OSError, TimeoutError) as fault:
        reason = f"cannot reach {asked.host}:{asked.port}: {fault}"
        raise _RefusedError("502 Bad Gateway", reason) from None
    if asked.request is None:
        await _answer(writer, "200 Connection established")
    await join(reader, writer, *far)


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
    await writer.drain()


async def _refuse(writer: asyncio.StreamWriter, refused: _RefusedError) -> None:
    body = f"trainmaster's gateway: {refused}\n".encode()
    is_challenge = refused.status.startswith("407")
    challenge = 'Proxy-Authenticate: Basic realm="trainmaster"\r\n' if is_challenge else ""
    head = f"HTTP/1.1 {refused.status}\r\n{challenge}Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
