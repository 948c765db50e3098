"""Requests to http:// addresses, by way of the gateway."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from trainstack.gateway.egress import Streams, open_first, open_stream, parse_proxy, proxy_for

_HTTP = 80
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-authorization", "proxy-connection"})
"""Fields for this connection alone: https://www.rfc-editor.org/rfc/rfc9110.html#section-7.6.1"""


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

        Raises as `egress.connect` does.
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
