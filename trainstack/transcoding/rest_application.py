"""REST in front of a service that is served over gRPC."""

from collections.abc import Mapping
from typing import Any

import grpc
import grpc.aio
from google.api_core.exceptions import from_grpc_error
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.iam.authentication import guarded_app
from trainstack.iam.principals import Tokens
from trainstack.json_bodies import google_error, read_object, refuse_call
from trainstack.transcoding.method import DEADLINE_S, MAX_MESSAGE_BYTES, Method, Services

_SYSTEM_PARAMETERS = {"alt", "$alt", "prettyPrint", "key", "quotaUser", "$.xgafv"}
"""https://cloud.google.com/apis/docs/system-parameters: those that are honoured, or of which a client notices nothing."""


class RestApplication:
    """An ASGI application that forwards each request to a gRPC service on this machine."""

    def __init__(self, *, target: str, services: Services, tokens: Tokens | None = None) -> None:
        """`target` is `host:port`; `tokens` are the same as the service's.

        Create it in the event loop that serves it.
        """
        self._channel = grpc.aio.insecure_channel(target)
        self._methods = [
            (method, method.pattern, self._channel.unary_unary(
                f"/{service}/{method.name}",
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            ))
            for service, methods in services.items()
            for method in methods
        ]  # fmt: skip
        self._guarded: ASGIApp = guarded_app(request_response(self._respond), tokens)

    async def stop(self) -> None:
        """Close the channel; stop the server that uses this application first."""
        await self._channel.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._guarded(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        path = request.url.path
        for method, pattern, call in self._methods:
            if method.verb == request.method and (match := pattern.fullmatch(path)):
                try:
                    in_path = dict(zip(method.path_fields, match.groups(), strict=True))
                    body = await _body(method, request)
                    message = _message(method, request.query_params, body, in_path)
                    answer = await call(message, timeout=DEADLINE_S, metadata=_credentials(request))
                    return JSONResponse(MessageToDict(answer))
                except (ValueError, ParseError) as fault:
                    return google_error(400, str(fault), status="INVALID_ARGUMENT")
                except grpc.aio.AioRpcError as refused:
                    is_refusal = refused.code() == grpc.StatusCode.UNIMPLEMENTED  # as in `refuse_call`
                    code = 400 if is_refusal else from_grpc_error(refused).code or 500
                    return google_error(int(code), refused.details() or "", status=refused.code().name)
        return refuse_call(request)


def _credentials(request: Request) -> tuple[tuple[str, str], ...]:
    return tuple(("authorization", value) for value in request.headers.getlist("authorization")[:1])


def _message(
    method: Method, query: Mapping[str, str], body: dict[str, Any], in_path: Mapping[str, str]
) -> Message:
    """The request. Raises `ValueError` for a parameter that has no effect here and would have one in the cloud."""
    fields_of = method.request.DESCRIPTOR
    known = {*fields_of.fields_by_camelcase_name, *fields_of.fields_by_name}
    for name, value in [*query.items(), *in_path.items()]:
        first, dot, second = name.partition(".")  # `topic.name` is the field `name` of the field `topic`
        if first in known:
            body[first] = {**body.get(first, {}), second: value} if dot else value
        elif name not in _SYSTEM_PARAMETERS:
            raise ValueError(f"the parameter {name} is not imitated by the local stack; leave it out")
    return ParseDict(body, method.request())


async def _body(method: Method, request: Request) -> dict[str, Any]:
    """Raises `ValueError` for a body that is not an object, or too large."""
    body = await read_object(request, most_bytes=MAX_MESSAGE_BYTES, may_be_empty=True)
    return body if method.body in ("", "*") else {method.body: body}
