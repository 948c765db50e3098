"""gRPC in front of a service that is served over REST."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToDict, Parse
from google.protobuf.message import Message

from trainstack.loopback import GATEWAY_ADDRESS
from trainstack.transcoding.method import DEADLINE_S, MAX_MESSAGE_BYTES, Method, NotServed, Services

if TYPE_CHECKING:
    import httpx

_CODES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 412: "FAILED_PRECONDITION"}
_PASSED_ON = ("authorization", "user-agent")


@dataclass(kw_only=True, eq=False)
class LazyGrpcServer:
    """A gRPC server on a loopback port that forwards each call to a REST service; it is created for its first client.

    Most stacks never need one, and its imports would slow every start by a tenth; `services` may import modules.
    `base_url` is the REST service's, without a trailing slash. The service treats its calls as the gateway's, and
    requires a token for each.
    """

    base_url: str
    services: Callable[[], Services]
    _running: "tuple[httpx.AsyncClient, grpc.aio.Server, int] | None" = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def port(self) -> int:
        """The server's port; the first call starts it. 0 after `stop`."""
        async with self._lock:
            if self._running is None and not self._stopped:
                services = await asyncio.to_thread(self._import_services)
                self._running = await self._start(services)
            return self._running[2] if self._running else 0

    async def stop(self) -> None:
        """Refuse new calls, and abort those in progress. Safe to call if none was started."""
        async with self._lock:
            self._stopped = True
            running, self._running = self._running, None
            if running:
                await running[1].stop(grace=None)
                await running[0].aclose()

    def _import_services(self) -> Services:
        import httpx  # noqa: F401  # in a thread, for it takes a while

        return self.services()

    async def _start(self, services: Services) -> "tuple[httpx.AsyncClient, grpc.aio.Server, int]":
        import httpx  # already imported

        transport = httpx.AsyncHTTPTransport(local_address=GATEWAY_ADDRESS)
        http = httpx.AsyncClient(base_url=self.base_url, timeout=DEADLINE_S, transport=transport)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)])
        for service, methods in services.items():
            handlers = {method.name: _handler(http, method) for method in methods}
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        server.add_generic_rpc_handlers([NotServed()])
        port: int = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return http, server, port


def _handler(http: "httpx.AsyncClient", method: Method) -> "grpc.RpcMethodHandler[Any, Any]":
    return grpc.unary_unary_rpc_method_handler(
        _call_of(http, method),
        request_deserializer=method.request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def _call_of(http: "httpx.AsyncClient", method: Method) -> Callable[[Message, Any], Awaitable[Message]]:
    import httpx  # already imported

    async def call(request: Message, context: "grpc.aio.ServicerContext[Any, Any]") -> Message:
        metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        try:
            answer = await http.request(**_request(method, request, metadata))
        except httpx.TransportError as fault:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the service does not answer: {fault}")
        if answer.is_error:
            await context.abort(*_refusal(answer))
        return Parse(answer.content, method.response(), ignore_unknown_fields=True)

    return call


def _request(method: Method, request: Message, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of the REST request."""
    fields: dict[str, Any] = MessageToDict(request)
    path = method.path_of({name: quote(attrgetter(name)(request)) for name in method.path_fields})
    rest = {key: value for key, value in fields.items() if key not in map(_camel, method.path_fields)}
    body = rest if method.body == "*" else rest.pop(_camel(method.body), {})
    query = {} if method.body == "*" else {key: _text(value) for key, value in rest.items()}
    headers = {name: metadata[name] for name in _PASSED_ON if name in metadata}
    sent = body if method.body else None
    return {"method": method.verb, "url": path, "params": query, "headers": headers, "json": sent}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(answer: "httpx.Response") -> tuple[grpc.StatusCode, str]:
    """The canonical code and the message of Google's error body; older APIs, such as Cloud Storage's, give only HTTP's code."""
    try:
        error = json.loads(answer.content)["error"]
        code = error.get("status") or _CODES[answer.status_code]
        return grpc.StatusCode[code], str(error["message"])
    except (ValueError, KeyError, TypeError):
        return grpc.StatusCode.UNKNOWN, f"HTTP {answer.status_code}: {answer.text[:500]}"
