"""One request as a method of the API sees it, and what all methods share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainmaster.local.http import json_value
from trainmaster.local.iam.grants import Grants
from trainmaster.local.storage.arrivals import Arrivals
from trainmaster.local.storage.errors import UnsettledError, invalid
from trainmaster.local.storage.preconditions import Preconditions, preconditions_from
from trainmaster.local.storage.resource import WRITABLE_OBJECT_FIELDS
from trainmaster.local.storage.store import Store
from trainmaster.local.storage.uploads import Uploads

Json = dict[str, object]

_MAX_JSON_BYTES = 4 << 20
_ATTEMPTS = 3

_Result_co = TypeVar("_Result_co", covariant=True)


class StoreOperation(Protocol[_Result_co]):
    """Something that looks at an object; see `Store` for what `strict` means."""

    def __call__(self, *, strict: bool) -> _Result_co: ...


@dataclass(kw_only=True)
class Service:
    """What the methods work on."""

    store: Store
    arrivals: Arrivals
    uploads: Uploads
    grants: Grants | None = None
    counts: Counter[str] = field(default_factory=Counter)
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def turn(self, upload_id: str) -> asyncio.Lock:
        """The lock of one upload session: its pieces are taken one after the other.

        A client that lost patience may send a piece again while the first is still being read.
        """
        return self._turns.setdefault(upload_id, asyncio.Lock())

    async def settled(self, operation: StoreOperation[_Result_co]) -> _Result_co:
        """The operation's result, after taking in what something else did to the files it looks at."""
        for _ in range(_ATTEMPTS):
            try:
                return operation(strict=True)
            except UnsettledError as changed:
                if not await asyncio.to_thread(self.arrivals.look, changed.bucket, changed.name):
                    break
        return operation(strict=False)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request to a method; `path` holds the decoded variables of its path."""

    request: Request
    path: Mapping[str, str]
    service: Service

    @property
    def store(self) -> Store:
        return self.service.store

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def base_url(self) -> str:
        """The address the client used: links of an answer lead back to it."""
        return f"http://{self.request.headers.get('host', '127.0.0.1')}"

    def conditions(self) -> Preconditions:
        return preconditions_from(self.query, headers=self.request.headers)

    def flag(self, key: str) -> bool:
        return self.query.get(key, "").lower() == "true"

    async def json(self) -> Json:
        """The body, an empty one as an empty object. Raises `RefusedError` (400) when it is anything but an object."""
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > _MAX_JSON_BYTES:
                raise invalid(f"The request body exceeds {_MAX_JSON_BYTES} bytes.")
        return json_object(bytes(body))

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        return self.request.stream()


def json_object(body: bytes) -> Json:
    """Raises `RefusedError` (400) when the text is no JSON object; an empty text stands for an empty object."""
    if not body.strip():
        return {}
    try:
        value = json_value(body)
    except ValueError as fault:
        raise invalid(f"Parse Error: the request body is not JSON ({fault}).") from None
    if not isinstance(value, dict):
        raise invalid(
            f"Parse Error: the request body is a JSON {type(value).__name__}; an object is expected."
        )
    return value


def text_field(body: Mapping[str, object], key: str) -> str:
    """A string of a JSON body; empty when absent or null. Raises `RefusedError` (400) for another type."""
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"Invalid value for {key}: {value!r}; a string is allowed.")
    return value


def object_fields(body: Mapping[str, object]) -> Json:
    """The writable object properties of a body, null ones left out.

    Raises:
        RefusedError: 400, a property has the wrong type.
    """
    fields: Json = {}
    for key in WRITABLE_OBJECT_FIELDS:
        value = body.get(key)
        if value is None:
            continue
        match key:
            case "metadata":
                fields[key] = custom_metadata(value)
            case "eventBasedHold" | "temporaryHold":
                if not isinstance(value, bool):
                    raise invalid(f"Invalid value for {key}: {value!r}; true or false is allowed.")
                fields[key] = value
            case _:
                fields[key] = text_field(body, key)
    return fields


def custom_metadata(value: object) -> dict[str, str]:
    """Custom metadata with its null values left out. Raises `RefusedError` (400) for other than strings."""
    if not isinstance(value, dict) or not all(
        each is None or isinstance(each, str) for each in value.values()
    ):
        raise invalid(f"Invalid value for metadata: {value!r}; an object of strings is allowed.")
    return {str(key): each for key, each in value.items() if each is not None}


def json_answer(resource: Mapping[str, object], *, code: int = 200) -> Response:
    return JSONResponse(dict(resource), status_code=code, media_type="application/json; charset=UTF-8")


def no_content() -> Response:
    return Response(status_code=204)
