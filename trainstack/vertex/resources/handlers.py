"""The standard methods, the same for each kind of resource: create, get, list, update, delete."""

import hashlib
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Generic

from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf import empty_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.jobs.collection import Collection
from trainstack.jobs.listing import AnyJob, parse_filter
from trainstack.jobs.resource.job import copy_of, new_job_id
from trainstack.vertex.resources.methods import KINDS, list_method, message_of, snake_case
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

Handler = Callable[[Message], Message]
"""Answers a request, each a protobuf message."""
CHANGING_S = 1.0
"""How long a change takes: clients first read the operation a second after its beginning."""
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
_MAX_PAGE, _DEFAULT_PAGE = 1000, 100
_FILTERABLE = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_ENUM, FieldDescriptor.TYPE_BOOL)
_OF_SERVICE = frozenset({"name", "create_time", "update_time", "etag"})


class StandardHandlers:
    """The standard methods on the resources of one store, for kinds that only hold data."""

    def __init__(self, store: ResourceStore) -> None:
        self._store = store

    def handlers(self) -> Mapping[str, Handler]:
        """By the names of the methods."""
        found: dict[str, Handler] = {}
        for kind in KINDS:
            found[f"Create{kind}"] = partial(self.create, kind)
            found[f"Get{kind}"] = partial(self.get, kind)
            found[list_method(kind)] = partial(self.list_page, kind)
            found[f"Update{kind}"] = partial(self.update, kind)
            found[f"Delete{kind}"] = partial(self.delete, kind)
        return found

    def create(self, kind: str, request: Message) -> Message:
        """Raises `ApiError`: NOT_FOUND without its parent, ALREADY_EXISTS, INVALID_ARGUMENT for an invalid id."""
        field, parent = snake_case(kind), by_number(request.parent)
        resource_id = getattr(request, f"{field}_id", "") or (
            new_job_id() if kind == "Tensorboard" else str(uuid.uuid4())
        )
        if not _ID.fullmatch(resource_id):
            raise InvalidArgumentError(f"{field}_id: expected {_ID.pattern}, found {resource_id!r:.200}.")
        self._refuse_without(parent)
        resource = copy_of(getattr(request, field))
        resource.name = f"{parent}/{KINDS[kind][1].rpartition('/')[2]}/{resource_id}"
        if self._store.find(type(resource), resource.name):
            raise ApiError(Status.ALREADY_EXISTS, f"The {kind} {resource.name} already exists.")
        resource.create_time.GetCurrentTime()
        self._store.put(touched(resource))
        return self.done(f"Create{kind}", resource) if kind in ("MetadataStore", "Tensorboard") else resource

    def get(self, kind: str, request: Message) -> Message:
        return self._store.get(message_of(kind), by_number(request.name))

    def list_page(self, kind: str, request: Message) -> Message:
        collection = f"{by_number(request.parent)}/{KINDS[kind][1].rpartition('/')[2]}"
        return self.page(request, self._store.under(message_of(kind), collection))

    def page(self, request: Message, resources: list[Message]) -> Message:
        """The page of those that match the request's filter; its token is the number of those before it."""
        answer = message_of(type(request).DESCRIPTOR.name.replace("Request", "Response"))
        (field,) = (field for field in answer.DESCRIPTOR.fields if field.name != "next_page_token")
        wanted = parse_filter(
            getattr(request, "filter", ""), field.message_type, _filterable(field), self._is_in
        )
        matching = [resource for resource in resources if wanted.matches(resource)]
        token, size = request.page_token or "0", request.page_size or _DEFAULT_PAGE
        if not re.fullmatch("[0-9]{1,9}", token) or size < 0:
            raise InvalidArgumentError(f"Invalid page_token {token!r:.200} or page_size {size}.")
        start, end = int(token), int(token) + min(size, _MAX_PAGE)
        more = str(end) if end < len(matching) else ""
        return answer(**{field.name: matching[start:end]}, next_page_token=more)

    def update(self, kind: str, request: Message) -> Message:
        """The fields of the mask, or all that the request sets, but those that the service writes."""
        changes = getattr(request, snake_case(kind))
        resource = merged(
            self._store.get(type(changes), by_number(changes.name)), changes, request.update_mask
        )
        self._store.put(touched(resource))
        return resource

    def delete(self, kind: str, request: Message) -> Message:
        name = by_number(request.name)
        self._store.get(message_of(kind), name)
        self._store.remove(name)
        return self.done("Delete", empty_pb2.Empty(), parent=name)

    def operation(self, request: Message) -> Message:
        """An operation; most are done from the beginning."""
        return self._store.get(operations_pb2.Operation, by_number(request.name))

    def done(
        self, method: str, response: Message, *, parent: str = "", below: str = "", **metadata: Any
    ) -> Message:
        """The operation of a method that has its response already; kept, so that it can be read.

        `below`: the resource of which its name is a part; by default it is the location's.
        """
        place = below or "/".join((parent or response.name).split("/")[:4])
        operation = operations_pb2.Operation(name=f"{place}/operations/{new_job_id()}", done=True)
        details = message_of(f"{method}OperationMetadata")(**metadata)
        details.generic_metadata.create_time.GetCurrentTime()
        details.generic_metadata.update_time.GetCurrentTime()
        operation.metadata.Pack(details)
        operation.response.Pack(response)
        self._store.put(operation)
        return operation

    def operations(self, request: Message) -> Message:
        """Those of a location, a model or an endpoint, newest first; at most as many as a page has."""
        found = self._store.under(operations_pb2.Operation, f"{by_number(request.name)}/operations")
        return operations_pb2.ListOperationsResponse(operations=found[:_MAX_PAGE])

    def begin(self, method: str, response: Message, *, at: str, below: str = "") -> Message:
        """As `done`, but the operation has its response only after `end`; `at` is the name of what it changes."""
        operation = self.done(method, response, below=below)
        self._store.link(change_of(at), operation.name, operation.SerializeToString())
        operation.done = False
        operation.ClearField("response")
        self._store.put(operation)
        return operation

    def end(self, at: str, response: Message | None = None) -> None:
        """Give the operations that change this resource their response, or this one, and remove what waits."""
        for ended in self._store.links_of(change_of(at)).values():
            operation = operations_pb2.Operation.FromString(ended)
            if response is not None:
                operation.response.Pack(response)
            self._store.put(operation)
        self._store.remove(change_of(at))

    def settled(self, kind: type[Message], collection: str) -> list[Message]:
        """The resources of a collection whose changes had their time, as they will be, in all projects and locations."""
        return [change for change in self._store.every(kind, f"{collection}Changes") if is_settled(change)]

    def _refuse_without(self, parent: str) -> None:
        """Raises `ApiError`: NOT_FOUND for a parent that is a resource and does not exist."""
        collection = "/".join(
            part if index % 2 == 0 else "*" for index, part in enumerate(parent.split("/")[4:])
        )
        for kind, (_, names, _) in KINDS.items():
            if collection == f"{names}/*":
                self._store.get(message_of(kind), parent)

    def _is_in(self, resource: Message, context: str) -> bool:
        return resource.name in self._store.links_of(by_number(context))


def _filterable(items: FieldDescriptor) -> list[str]:
    """The fields of the items by which a list can be filtered."""
    return [
        field.name
        for field in items.message_type.fields
        if field.name == "labels"
        or field.type in _FILTERABLE
        or (field.message_type and field.message_type.name == "Timestamp")
    ]


def merged(resource: Message, changes: Message, mask: Message) -> Message:
    """The resource with the fields of the mask, or those that are set in `changes`.

    Raises:
        ApiError: INVALID_ARGUMENT for a mask that names no field.
    """
    if not mask.IsValidForDescriptor(resource.DESCRIPTOR):
        raise InvalidArgumentError(f"update_mask: no fields {', '.join(mask.paths)}.")
    paths = list(mask.paths) or [field.name for field, _ in changes.ListFields()]
    kept = FieldMask(paths=[path for path in paths if path not in _OF_SERVICE])
    kept.MergeMessage(changes, resource, replace_message_field=True, replace_repeated_field=True)
    return resource


def with_fields_of(resource: Message, mask: Message) -> Message:
    """The resource with only the fields of the mask; whole without a mask."""
    if not mask.paths:
        return resource
    shown = type(resource)()
    mask.MergeMessage(resource, shown)
    return shown


def change_of(name: str) -> str:
    """Where a resource is stored as it will be, while an operation changes it."""
    place, collection, resource_id = name.rsplit("/", 2)
    return f"{place}/{collection}Changes/{resource_id}"


def is_settled(resource: Message) -> bool:
    """Whether its change had its time."""
    changed: datetime = resource.update_time.ToDatetime(tzinfo=UTC)
    return datetime.now(UTC) - changed >= timedelta(seconds=CHANGING_S)


def touched(resource: Message) -> Message:
    """The resource as changed just now."""
    resource.update_time.GetCurrentTime()
    if "etag" in resource.DESCRIPTOR.fields_by_name:
        resource.etag = hashlib.sha256(resource.SerializeToString()).hexdigest()[:16]
    return resource


class JobHandlers(Generic[AnyJob]):
    """The methods on the jobs of one kind."""

    def __init__(self, jobs: Collection[AnyJob], standard: StandardHandlers) -> None:
        self._jobs, self._standard = jobs, standard
        self._kind = jobs.kind.kind

    def handlers(self) -> Mapping[str, Handler]:
        return {
            f"Create{self._kind}": self.create,
            f"Get{self._kind}": lambda request: self._jobs.get(*_name_parts(request)),
            list_method(self._kind): self.list_page,
            f"Cancel{self._kind}": self.cancel,
            f"Delete{self._kind}": self.delete,
        }

    def create(self, request: Message) -> AnyJob:
        _, project, _, location = by_number(request.parent).split("/")
        return self._jobs.create(project, location, getattr(request, snake_case(self._kind)))

    def list_page(self, request: Message) -> Message:
        """With the fields of the read mask; of tuning jobs, without their trials.

        Raises:
            ApiError: INVALID_ARGUMENT for a mask that names no field, and as `Catalogue.page`.
        """
        if not request.read_mask.IsValidForDescriptor(message_of(self._kind).DESCRIPTOR):
            raise InvalidArgumentError(f"read_mask: no fields {', '.join(request.read_mask.paths)}.")
        parent, size, token = by_number(request.parent), request.page_size, request.page_token
        jobs, next_token = self._jobs.page(parent, filter_=request.filter, size=size, token=token)
        shown = {
            f"{snake_case(self._kind)}s": [with_fields_of(job.message, request.read_mask) for job in jobs]
        }
        return message_of(f"{list_method(self._kind)}Response")(**shown, next_page_token=next_token)

    def cancel(self, request: Message) -> Message:
        self._jobs.cancel(*_name_parts(request))
        return empty_pb2.Empty()

    async def delete(self, request: Message) -> Message:
        await self._jobs.delete(*_name_parts(request))
        return self._standard.done("Delete", empty_pb2.Empty(), parent=by_number(request.name))


def _name_parts(request: Message) -> tuple[str, str]:
    """The job's parent and id."""
    parent, _, job_id = by_number(request.name).rsplit("/", 2)
    return parent, job_id
