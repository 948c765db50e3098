"""gRPC in front of a service that is served over REST."""

import json
from collections.abc import Awaitable, Callable, Mapping
from operator import attrgetter
from typing import Any
from urllib.parse import quote

import grpc
import grpc.aio
import httpx
from google.protobuf.json_format import MessageToDict, Parse
from google.protobuf.message import Message

from trainstack.loopback import GATEWAY_ADDRESS
from trainstack.transcoding.method import DEADLINE_S, MAX_MESSAGE_BYTES, Method, Services
from trainstack.transcoding.not_served import NotServed

_CODES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 412: "FAILED_PRECONDITION"}
_PASSED_ON = ("authorization", "user-agent")


class GrpcServer:
    """A gRPC server on a loopback port that forwards each call to a REST service."""

    def __init__(self, *, base_url: str, services: Services) -> None:
        """Bind a free port.

        `base_url` is the REST service's, without a trailing slash. The service treats its calls as the
        gateway's, and requires a token for each.
        """
        self._http = httpx.AsyncClient(
            base_url=base_url,
            timeout=DEADLINE_S,
            transport=httpx.AsyncHTTPTransport(local_address=GATEWAY_ADDRESS),
        )
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)])
        for service, methods in services.items():
            handlers = {method.name: self._handler(method) for method in methods}
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        self._server.add_generic_rpc_handlers([NotServed()])
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")

    async def start(self) -> int:
        """The port."""
        await self._server.start()
        return self.port

    async def stop(self) -> None:
        """Refuse new calls, and abort those in progress."""
        await self._server.stop(grace=None)
        await self._http.aclose()

    def _handler(self, method: Method) -> "grpc.RpcMethodHandler[Any, Any]":
        return grpc.unary_unary_rpc_method_handler(
            self._call_of(method),
            request_deserializer=method.request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )

    def _call_of(self, method: Method) -> Callable[[Message, Any], Awaitable[Message]]:
        async def call(request: Message, context: "grpc.aio.ServicerContext[Any, Any]") -> Message:
            metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
            try:
                answer = await self._http.send(self._request(method, request, metadata))
            except httpx.TransportError as fault:
                await context.abort(grpc.StatusCode.UNAVAILABLE, f"the service does not answer: {fault}")
            if answer.is_error:
                await context.abort(*_refusal(answer))
            return Parse(answer.content, method.response(), ignore_unknown_fields=True)

        return call

    def _request(self, method: Method, request: Message, metadata: Mapping[str, str]) -> httpx.Request:
        fields: dict[str, Any] = MessageToDict(request)
        path = method.path_of({name: quote(attrgetter(name)(request)) for name in method.path_fields})
        rest = {key: value for key, value in fields.items() if key not in map(_camel, method.path_fields)}
        body = rest if method.body == "*" else rest.pop(_camel(method.body), {})
        query = {} if method.body == "*" else {key: _text(value) for key, value in rest.items()}
        headers = {name: metadata[name] for name in _PASSED_ON if name in metadata}
        return self._http.build_request(
            method.verb, path, params=query, headers=headers, json=body if method.body else None
        )


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(answer: httpx.Response) -> tuple[grpc.StatusCode, str]:
    """The canonical code and the message of Google's error body; older APIs, such as Cloud Storage's, give only HTTP's code."""
    try:
        error = json.loads(answer.content)["error"]
        code = error.get("status") or _CODES[answer.status_code]
        return grpc.StatusCode[code], str(error["message"])
    except (ValueError, KeyError, TypeError):
        return grpc.StatusCode.UNKNOWN, f"HTTP {answer.status_code}: {answer.text[:500]}"
