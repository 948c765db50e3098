"""REST in front of the resources' handlers: a request becomes the method's message, by its HTTP rule."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import DecodeError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainstack.jobs.resource.errors import InvalidArgumentError
from trainstack.jobs.resource.machines import require_region
from trainstack.jobs.service import JobService
from trainstack.json_bodies import read_object
from trainstack.surface import load_surface
from trainstack.transcoding import Method
from trainstack.transcoding.method import method_from
from trainstack.vertex.resources.handlers import StandardHandlers, message_of
from trainstack.vertex.resources.metadata import Metadata
from trainstack.vertex.resources.methods import LOCATION, methods
from trainstack.vertex.resources.models import Models
from trainstack.vertex.resources.pipelines import Pipelines
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

MAX_BODY_BYTES = 4 * 1024 * 1024
SURFACE = load_surface(Path(__file__).parents[1] / "surface.toml")
_MODEL = message_of("Model").DESCRIPTOR
_VERSION = re.compile(r"/(v1(beta1)?|ui)/")


class Resources:
    """The resources of one stack, in a separate file, and their methods."""

    def __init__(self, path: Path, jobs: JobService, buckets: Path) -> None:
        self._store = ResourceStore(path)
        standard = StandardHandlers(self._store)
        models = Models(self._store, standard)
        self._pipelines = Pipelines(self._store, standard, models, jobs, buckets)
        handlers = {
            **standard.handlers(),
            **models.handlers(),
            **Metadata(self._store).handlers(),
            **self._pipelines.handlers(),
            "GetOperation": standard.operation,
        }
        operations = f"GET /v1/{{name={LOCATION}/operations/*}}"
        read = method_from(
            operations, "GetOperation", operations_pb2.GetOperationRequest, operations_pb2.Operation
        )
        served = [read, *(method for service, method in methods() if service != "JobService")]
        self._methods = [(method, method.pattern, handlers[method.name]) for method in served]

    def close(self) -> None:
        self._store.close()

    async def answer(self, request: Request) -> Response:
        """Raises `HTTPException`: 404 for a path that no method has."""
        path = _VERSION.sub("/v1/", request.url.path, count=1)
        for method, pattern, handler in self._methods:
            match = pattern.fullmatch(path) if method.verb == request.method else None
            if match:
                project, location = path.split("/")[3:6:2]
                require_region(location)
                self._pipelines.settle(by_number(f"projects/{project}/locations/{location}"))
                names = dict(zip(method.path_fields, match.groups(), strict=True))
                message = await _message(method, request, names)
                if faults := [*query_faults(method.name, request), *_body_faults(method, message)]:
                    raise InvalidArgumentError(*faults)
                return JSONResponse(MessageToDict(handler(message)))
        raise HTTPException(404)


def query_faults(method: str, request: Request) -> list[str]:
    """A sentence for each query parameter that the method does not honour."""
    return SURFACE.query_faults(method, request.query_params)


def _body_faults(method: Method, message: Message) -> Iterator[str]:
    """A sentence for each field of the body that is not honoured, also of a model in it."""
    if not method.body:
        return
    body = message if method.body == "*" else getattr(message, method.body)
    for part in (body, *(value for field, value in body.ListFields() if field.message_type is _MODEL)):
        yield from SURFACE.body_faults(part.DESCRIPTOR.name, MessageToDict(part))


async def _message(method: Method, request: Request, names: Mapping[str, str]) -> Message:
    """The method's request, with the fields of the path, the query and the body.

    Booleans of the query are left out: what the table honours has none.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    message, known = method.request(), method.request.DESCRIPTOR.fields_by_camelcase_name
    query = {name: text for name, text in request.query_params.items() if name in known}
    try:
        body = await read_object(request, most_bytes=MAX_BODY_BYTES, may_be_empty=True)
        rest = {method.body: body} if method.body not in ("", "*") else body
        texts = {name: text for name, text in query.items() if known[name].type != FieldDescriptor.TYPE_BOOL}
        ParseDict({**texts, **rest}, message)
        method.request.FromString(message.SerializeToString())  # refuses what is too deep to be read again
    except (ValueError, ParseError, DecodeError) as fault:
        raise InvalidArgumentError(f"Invalid JSON payload received: {fault}.") from fault
    for name, text in names.items():
        *outer, field = name.split(".")
        setattr(getattr(message, outer[0]) if outer else message, field, text)
    return message
