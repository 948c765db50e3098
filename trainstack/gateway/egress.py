"""The stack's way to the network: directly, or through the proxies named in its environment, and never to this machine.

What listens on this machine trusts local programs, as the stack's services do.
"""

import asyncio
import base64
import contextlib
import ipaddress
import os
import socket
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from trainstack.tasks import cancel_all

CHUNK_BYTES = 256 << 10
_CONNECT_WITHIN_S = 30.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_GOOGLE = "googleapis.com"

_HTTP = 80
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-authorization", "proxy-connection"})
"""Fields for this connection alone: https://www.rfc-editor.org/rfc/rfc9110.html#section-7.6.1"""

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def proxy_for(host: str, *schemes: str) -> str:
    """The first proxy that this process's variables name for these schemes and a host, or an empty string."""
    if urllib.request.proxy_bypass_environment(host):  # type: ignore[attr-defined]  # not in typeshed
        return ""
    proxies = urllib.request.getproxies_environment()
    return next((proxies[scheme] for scheme in schemes if proxies.get(scheme)), "")


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A proxy, and the header fields with its credentials, if it has any."""

    host: str
    port: int
    fields: tuple[str, ...]


def parse_proxy(address: str) -> Proxy:
    """The proxy at an address in the form of the variables: a URL, or host and port.

    Raises:
        OSError: it has another form.
    """
    url = urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = url.port or 80
    except ValueError:
        port = 0
    if url.scheme != "http" or not url.hostname or not port:
        scheme, separator, rest = address.rpartition("://")
        found = f"{scheme}{separator}{rest.rpartition('@')[2]}"  # without its credentials
        raise OSError(f"this machine's proxy must have the form http://host:port, found {found!r}")
    if url.username is None:
        return Proxy(host=url.hostname, port=port, fields=())
    pair = base64.b64encode(f"{unquote(url.username)}:{unquote(url.password or '')}".encode()).decode()
    return Proxy(host=url.hostname, port=port, fields=(f"Proxy-Authorization: Basic {pair}",))


def http_variables(only_by: str | None = None) -> dict[str, str]:
    """Variables that let programs reach http:// addresses as this process does: its proxy, and the hosts that need none.

    Patterns that match Google's hosts are left out: those hosts are served by the stack. A program in another network
    reaches everything `only_by` this proxy.
    """
    if only_by:
        loopback = ",".join(_LOOPBACK)
        return {"http_proxy": only_by, "HTTP_PROXY": only_by, "no_proxy": loopback, "NO_PROXY": loopback}
    direct = [host.strip() for host in os.environ.get("no_proxy", os.environ.get("NO_PROXY", "")).split(",")]
    no_proxy = ",".join([*_LOOPBACK, *(host for host in direct if host and not _concerns_google(host))])
    proxy = urllib.request.getproxies_environment().get("http", "")
    http = {"http_proxy": proxy, "HTTP_PROXY": proxy} if proxy else {}
    return {**http, "no_proxy": no_proxy, "NO_PROXY": no_proxy}


def _concerns_google(pattern: str) -> bool:
    name = pattern.lower().lstrip("*.").partition(":")[0]
    return not name or _GOOGLE.endswith(name) or name.endswith(_GOOGLE)


async def connect(host: str, port: int, addresses: Sequence[str] = ()) -> Streams:
    """A connection to a host on the network, through this machine's proxy if it has one, otherwise to one of `addresses`.

    Raises:
        OSError: the host cannot be reached, or the proxy refuses; the message says which.
        TimeoutError: it took longer than 30 s.
    """
    if not (address := proxy_for(host, "https", "all")):
        return await open_first(addresses or [host], port)
    proxy = parse_proxy(address)
    reader, writer = await open_stream(proxy.host, proxy.port)
    target = f"{host}:{port}"
    head = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *proxy.fields, "", ""]
    writer.write("\r\n".join(head).encode())
    try:
        status = await _status(reader)
    except (OSError, TimeoutError):
        await close_writer(writer)
        raise
    if status.split(" ")[1:2] != ["200"]:
        await close_writer(writer)
        raise OSError(f"this machine's proxy answered {status!r}")
    return reader, writer


async def open_first(hosts: Sequence[str], port: int) -> Streams:
    """A direct connection to the first of these that can be reached. Raises as `connect` does."""
    for host in hosts[:-1]:
        with contextlib.suppress(OSError, TimeoutError):
            return await open_stream(host, port)
    return await open_stream(hosts[-1], port)


async def open_stream(host: str, port: int, *, sender: tuple[str, int] | None = None) -> Streams:
    """A direct connection to a host, from the address `sender` if given. Raises as `connect` does."""
    async with asyncio.timeout(_CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(host, port, limit=CHUNK_BYTES, local_addr=sender)
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


async def close_writer(writer: asyncio.StreamWriter) -> None:
    """Close the connection, whatever its state."""
    writer.close()
    with contextlib.suppress(OSError, asyncio.CancelledError):
        await writer.wait_closed()


async def join(
    near_reader: asyncio.StreamReader,
    near_writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Copy in both directions until either side closes."""
    copies = [
        asyncio.create_task(_copy(near_reader, far_writer)),
        asyncio.create_task(_copy(far_reader, near_writer)),
    ]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_all(copies)
        await close_writer(far_writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()


async def _status(reader: asyncio.StreamReader) -> str:
    """The status line of a proxy's response; reads its head to the end."""
    try:
        async with asyncio.timeout(_CONNECT_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        raise OSError("this machine's proxy closed the connection without a response") from None
    except asyncio.LimitOverrunError:
        raise OSError(
            f"the head of the response from this machine's proxy exceeds {CHUNK_BYTES} bytes"
        ) from None
    return head.split(b"\r\n", 1)[0].decode("latin-1")


class OwnAddressError(Exception):
    """A job asked for an address of this machine."""


async def addresses_elsewhere(host: str, port: int) -> list[str]:
    """The addresses of a host, all of them elsewhere; none if it cannot be resolved here.

    Connect to one of these and not to the name, which may have other addresses the next time.

    Raises:
        OwnAddressError: it leads to this machine, or to its link, where cloud machines have their metadata server.
    """
    addresses: list[str] = []
    with contextlib.suppress(OSError, UnicodeError):
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(info[4][0]) for info in infos]
    if any(map(_is_own, addresses)):
        raise OwnAddressError(
            f"{host}:{port} is an address of this machine, which jobs cannot reach; start the stack with "
            "--isolation none if they must"
        )
    return addresses


def _is_own(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_unspecified or ip.is_link_local or ip.is_multicast or _is_assigned(ip)


def _is_assigned(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an interface of this machine has the address: only such a one can be bound."""
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6  # noqa: PLR2004  the protocol's version
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((str(ip), 0))
        return True
    return False


@dataclass(frozen=True, kw_only=True)
class PlainRequest:
    """An http:// request without its body. Its connection ends with the response."""

    method: str
    url: str
    host: str
    port: int
    fields: tuple[str, ...]

    async def send(self, addresses: Sequence[str] = ()) -> Streams:
        """Send it and return the connection: through this machine's proxy for http:// if it has one, otherwise to one of `addresses`.

        Raises as `connect` does.
        """
        if address := proxy_for(self.host, "http"):
            proxy = parse_proxy(address)
            streams, head = await open_stream(proxy.host, proxy.port), self._head(self.url, proxy.fields)
        else:
            path = urlsplit(self.url)._replace(scheme="", netloc="", fragment="").geturl() or "/"
            streams, head = await open_first(addresses or [self.host], self.port), self._head(path)
        streams[1].write(head)
        await streams[1].drain()
        return streams

    def _head(self, target: str, more: Sequence[str] = ()) -> bytes:
        fields = (*self.fields, "Connection: close", *more)
        return "\r\n".join([f"{self.method} {target} HTTP/1.1", *fields, "", ""]).encode("latin-1")


def plain_request(line: str, fields: Sequence[str]) -> PlainRequest | None:
    """The request of this request line and these fields; None if it is not for an http:// address."""
    method, _, rest = line.partition(" ")
    url = rest.partition(" ")[0]
    try:
        parts = urlsplit(url)
        port = parts.port or _HTTP
    except ValueError:
        return None
    if parts.scheme != "http" or not parts.hostname or not method.isalpha():
        return None
    kept = tuple(field for field in fields if field and field.partition(":")[0].lower() not in _HOP_BY_HOP)
    return PlainRequest(method=method, url=url, host=parts.hostname, port=port, fields=kept)
