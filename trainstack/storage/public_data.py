"""Forwards reads of public data: data sets and weights that libraries download.

`https://storage.googleapis.com/tensorflow/…` has the same host name as the project's buckets, so it leads
into the stack. On Vertex AI the download works because the bucket is public; here the request is forwarded to
the real service.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.json_bodies import google_error
from trainstack.loopback import GATEWAY_ADDRESS
from trainstack.storage.api.routes import route_for
from trainstack.storage.objects.errors import RefusedError

if TYPE_CHECKING:
    import httpx

SERVICE = "https://storage.googleapis.com"
_READS = frozenset({"buckets.get", "objects.get", "objects.list"})
_ASKED = frozenset({b"accept", b"accept-encoding", b"range", b"user-agent", b"if-match", b"if-none-match"})
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"trailer"})
_WITHIN_S, _CONNECT_WITHIN_S = 60.0, 5.0  # programs that can work without the data should not wait long


@dataclass(kw_only=True)
class PublicData:
    """An ASGI application: `app`, except for anonymous reads through the gateway of buckets that do not exist here.

    `has_bucket` says which exist. No other request leaves the machine: one with a token is about the
    project's own data, even if the bucket does not exist.
    """

    app: ASGIApp
    has_bucket: Callable[[str], bool]
    url: str = SERVICE
    _client: "httpx.AsyncClient | None" = field(default=None, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_anonymous(scope) and (bucket := _bucket_read(scope)) and not self.has_bucket(bucket):
            await self._hand_on(bucket, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def close(self) -> None:
        """Close the connections to the service. Safe to call twice."""
        client, self._client = self._client, None
        if client:
            await client.aclose()

    async def _hand_on(self, bucket: str, scope: Scope, receive: Receive, send: Send) -> None:
        import httpx  # most stacks never need it, and its import would slow every start

        if self._client is None:
            timeout = httpx.Timeout(_WITHIN_S, connect=_CONNECT_WITHIN_S)
            self._client = httpx.AsyncClient(timeout=timeout, verify=ssl.create_default_context())
        query = scope["query_string"].decode("ascii", errors="replace")
        asked = {name: value for name, value in scope["headers"] if name in _ASKED}
        request = self._client.build_request(
            scope["method"],
            f"{self.url}{(scope.get('raw_path') or scope['path'].encode()).decode('ascii', errors='replace')}{'?' if query else ''}{query}",
            headers=list({b"accept-encoding": b"identity", **asked}.items()),
        )
        try:
            answer = await self._client.send(request, stream=True)
        except httpx.TransportError as fault:
            message = f"The bucket {bucket!r} does not exist in this stack, and {self.url} cannot be reached for it: {fault}"
            await google_error(502, message, reason="badGateway")(scope, receive, send)
            return
        try:
            response = StreamingResponse(answer.aiter_raw(), answer.status_code)
            response.raw_headers = [
                (name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _HOP_BY_HOP
            ]
            await response(scope, receive, send)
        finally:
            await answer.aclose()


def _is_anonymous(scope: Scope) -> bool:
    """Whether a request came through the gateway without credentials."""
    if scope["type"] != "http" or (scope.get("client") or ("",))[0] != GATEWAY_ADDRESS:
        return False
    return not any(name == b"authorization" for name, _ in scope["headers"])


def _bucket_read(scope: Scope) -> str:
    """The bucket whose data a request reads; empty if it is not a read."""
    try:
        route, path = route_for({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope)
    except RefusedError:
        return ""
    return path.get("bucket", "") if route.name in _READS else ""
