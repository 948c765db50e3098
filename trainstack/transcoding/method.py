"""One method of an API, with its HTTP rule."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from google.protobuf import empty_pb2
from google.protobuf.message import Message

from trainstack.json_bodies import not_served

_FIELD = re.compile(r"\{([\w.]+)=([^}]*)\}")
MAX_MESSAGE_BYTES = 16 << 20
DEADLINE_S = 600.0


@dataclass(frozen=True, kw_only=True)
class Method:
    """One unary call.

    Attributes:
        name: the method's name in the service.
        request, response: the protobuf classes.
        verb: the HTTP method.
        path: its path; `{topic=projects/*/topics/*}` stands for the request's field `topic`, a string of that
            form, in which `*` is anything but a slash.
        body: the field that is the body, `*` for every field that is not in the path; empty for no body.
    """

    name: str
    request: type[Message]
    response: type[Message]
    verb: str
    path: str
    body: str = ""

    @property
    def path_fields(self) -> list[str]:
        """The fields in the path."""
        return [name for name, _ in _FIELD.findall(self.path)]

    def path_of(self, fields: Mapping[str, str]) -> str:
        """The path with the fields filled in, unescaped."""
        return _FIELD.sub(lambda match: fields.get(match[1], ""), self.path)

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches whole paths of the method, with a group for each field; `a.b` is the group `a__b`."""
        return re.compile(
            _FIELD.sub(
                lambda match: f"(?P<{match[1].replace('.', '__')}>{match[2].replace('*', '[^/:]+')})",
                self.path,
            )
        )


def method_from(
    rule: str, name: str, request: Any, response: Any = empty_pb2.Empty, *, body: str = ""
) -> Method:
    """The method with an HTTP rule such as `GET /v1/{topic=projects/*/topics/*}`.

    `request` and `response` are the official client's classes, of protobuf or proto-plus; `body` is as in `Method`.
    """
    verb, _, path = rule.partition(" ")
    plain = [cls.pb() if hasattr(cls, "pb") else cls for cls in (request, response)]
    return Method(name=name, request=plain[0], response=plain[1], verb=verb, path=path, body=body)


Services: TypeAlias = Mapping[str, Sequence[Method]]
"""The methods of each service by its full name, `google.cloud.aiplatform.v1.JobService`."""


class NotServed(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Answers UNIMPLEMENTED with a sentence, before it reads a request; gRPC itself would only say `Method not found!`.

    Add it after the handlers of the methods that are served.
    """

    def service(self, call: Any) -> Any:
        async def refuse(_requests: object, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, not_served(call.method.lstrip("/")))

        return grpc.stream_stream_rpc_method_handler(refuse)
