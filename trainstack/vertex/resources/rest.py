"""REST in front of the resources' handlers: a request becomes the method's message, by its HTTP rule."""

import asyncio
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainstack.errors import InvalidArgumentError
from trainstack.iam.authorization import authorize, project_of
from trainstack.iam.service import Grants
from trainstack.injections.http import resource_method
from trainstack.jobs.resource.job import VertexJob, parse_fields
from trainstack.jobs.resource.machines import require_region
from trainstack.jobs.service import JobService
from trainstack.json_bodies import read_object
from trainstack.surface import load_surface
from trainstack.transcoding.method import Method
from trainstack.tuning.service import TuningService
from trainstack.vertex.resources.endpoints import Endpoints
from trainstack.vertex.resources.handlers import JobHandlers, StandardHandlers
from trainstack.vertex.resources.metadata import Metadata
from trainstack.vertex.resources.methods import message_of, methods
from trainstack.vertex.resources.models import Models
from trainstack.vertex.resources.persistent import PersistentResources
from trainstack.vertex.resources.pipelines import Pipelines
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

MAX_BODY_BYTES = 4 * 1024 * 1024
SURFACE = load_surface(Path(__file__).parents[1] / "surface.toml")
_MODEL = message_of("Model").DESCRIPTOR
_VERSION = re.compile(r"/(v1(beta1)?|ui)/")


class Resources:
    """The resources of one stack, in a separate file, and their methods."""

    def __init__(
        self, path: Path, jobs: JobService, tuning: TuningService, buckets: Path, grants: Grants | None
    ) -> None:
        self._store, self._grants = ResourceStore(path), grants
        standard = StandardHandlers(self._store)
        self._models = models = Models(self._store, standard, buckets)
        self._endpoints = Endpoints(self._store, standard, models, jobs.machine_types)
        self._persistent = PersistentResources(self._store, standard, jobs)
        self._pipelines = Pipelines(self._store, standard, models, jobs)
        handlers = {
            **standard.handlers(),
            **models.handlers(),
            **self._endpoints.handlers(),
            **Metadata(self._store).handlers(),
            **self._pipelines.handlers(),
            **self._persistent.handlers(),
            **JobHandlers(jobs, standard).handlers(),
            **JobHandlers(tuning, standard).handlers(),
            "GetOperation": standard.operation,
            "WaitOperation": standard.operation,
            "ListOperations": standard.operations,
        }
        self._methods = [
            (service, method, method.pattern, handlers[method.name]) for service, method in methods()
        ]

    def close(self) -> None:
        self._store.close()

    async def answer(self, request: Request) -> Response:
        """The answer of the method that has the path, in each of the API's versions: gcloud's beta commands use v1beta1.

        Raises:
            HTTPException: 404 for a path that no method has.
            DeniedError: the caller lacks the permission that the method requires.
            ApiError: the method refuses.
        """
        path = _VERSION.sub("/v1/", request.url.path, count=1)
        for service, method, pattern, handler in self._methods:
            match = pattern.fullmatch(path) if method.verb == request.method else None
            if match:
                project, location = path.split("/")[3:6:2]
                on = {"project": project_of(self._grants, project)}
                of_model = re.search("/models/[^/]+/operations/", path)
                called = "models.get" if of_model else resource_method(request.scope)
                authorize(self._grants, f"vertex.{called}", on)
                require_region(location)
                names = dict(zip(method.path_fields, match.groups(), strict=True))
                message = await _message(method, request, names)
                faults = SURFACE.query_faults(method.name, request.query_params)
                self._persistent.settle()
                self._models.settle()
                self._endpoints.settle()
                if service != "JobService":  # a job's validation finds those of its fields
                    self._pipelines.settle(by_number(f"projects/{project}/locations/{location}"))
                    faults += _body_faults(method, message)
                if faults:
                    raise InvalidArgumentError(*faults)
                answer = handler(message)
                answer = await answer if inspect.isawaitable(answer) else answer
                integers = "enum-encoding=int" in request.query_params.get("$alt", "")
                if type(answer) is VertexJob:
                    return _shown(answer, integers)
                # In a thread: serializing a study of a thousand trials takes a while, and other requests wait.
                return await asyncio.to_thread(_shown, answer, integers)
        raise HTTPException(404)


def _shown(answer: Message | VertexJob, integers: bool) -> Response:
    """The Python client requests integers for enums with `$alt=json;enum-encoding=int`."""
    if isinstance(answer, VertexJob):
        return JSONResponse(answer.to_json(enums_as_integers=integers))
    return JSONResponse(MessageToDict(answer, use_integers_for_enums=integers))


def _body_faults(method: Method, message: Message) -> Iterator[str]:
    """A sentence for each field of the body that is not honoured, also of a model in it."""
    if not method.body:
        return
    body = message if method.body == "*" else getattr(message, method.body)
    for part in (body, *(value for field, value in body.ListFields() if field.message_type is _MODEL)):
        yield from SURFACE.body_faults(part.DESCRIPTOR.name, MessageToDict(part))


async def read_fields(request: Request, *, may_be_empty: bool = False) -> dict[str, Any]:
    """The JSON object that is the body. Raises `ApiError`: INVALID_ARGUMENT."""
    try:
        return await read_object(request, most_bytes=MAX_BODY_BYTES, may_be_empty=may_be_empty)
    except ValueError as fault:
        raise InvalidArgumentError(f"Invalid JSON payload received: {fault}.") from fault


async def _message(method: Method, request: Request, names: Mapping[str, str]) -> Message:
    """The method's request, with the fields of the path, the query and the body.

    Booleans of the query are left out: what the table honours has none.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    message, known = method.request(), method.request.DESCRIPTOR.fields_by_camelcase_name
    query = {name: text for name, text in request.query_params.items() if name in known}
    body = await read_fields(request, may_be_empty=True)
    rest = {method.body: body} if method.body not in ("", "*") else body
    texts = {name: text for name, text in query.items() if known[name].type != FieldDescriptor.TYPE_BOOL}
    parse_fields({**texts, **rest}, message)
    try:
        method.request.FromString(message.SerializeToString())  # refuses what is too deep to be read again
    except DecodeError as fault:
        raise InvalidArgumentError(f"Invalid JSON payload received: {fault}.") from fault
    for name, text in names.items():
        *outer, field = name.split(".")
        setattr(getattr(message, outer[0]) if outer else message, field, text)
    return message
