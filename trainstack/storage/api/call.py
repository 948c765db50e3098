"""One request to a method of the API, with helpers that all methods share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainstack.json_bodies import read_object
from trainstack.loopback import address_of
from trainstack.storage.objects.errors import RefusedError, condition_not_met, invalid
from trainstack.storage.objects.preconditions import (
    ObjectTarget,
    Preconditions,
    preconditions_from,
    whole_number,
)
from trainstack.storage.objects.records import BucketRecord, ObjectRecord
from trainstack.storage.objects.resource import WRITABLE_OBJECT_FIELDS
from trainstack.storage.service import StorageService
from trainstack.storage.store import ObjectStore
from trainstack.surface import load_surface

Json = dict[str, object]

SURFACE = load_surface(Path(__file__).parents[1] / "surface.toml")
JSON_TYPE = "application/json; charset=UTF-8"
_MAX_METADATA_BYTES = 8 << 10
"""Of an object: https://cloud.google.com/storage/quotas#objects"""
_MAX_HEADER_CHARACTERS = 1024
_MAX_JSON_BYTES = 4 << 20
_REFUSED_HEADER = b"x-goog-acl"
"""The XML API's predefined ACLs."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request to a method; `path` has the decoded variables of its path."""

    request: Request
    path: Mapping[str, str]
    service: StorageService

    @property
    def store(self) -> ObjectStore:
        return self.service.store

    @cached_property
    def query(self) -> Mapping[str, str]:
        return dict(self.request.query_params)

    @property
    def base_url(self) -> str:
        """The base URL that the client used; links in responses lead back to it."""
        return address_of(self.request.headers.get("host", "127.0.0.1"))

    def check(self, method: str) -> None:
        """Raises `RefusedError` (400) for parameters and headers that this method does not honour."""
        names = [name for name, _ in self.request.scope["headers"] if name.startswith(_REFUSED_HEADER)]
        faults = [f"the header {name.decode('latin-1')} is not imitated by the local stack" for name in names]
        _refuse_any(faults + SURFACE.query_faults(method, self.query))

    def conditions(self) -> Preconditions:
        """Raises `RefusedError`: 400 for a condition that is not a number."""
        return preconditions_from(self.query, headers=self.request.headers)

    def target(self) -> ObjectTarget:
        """The object that the path names, with the query's preconditions."""
        return ObjectTarget(
            bucket=self.path["bucket"],
            name=self.path["object"],
            generation=whole_number(self.query, "generation"),
            conditions=self.conditions(),
        )

    async def stored_object(self, target: ObjectTarget) -> ObjectRecord:
        """The target's object, once its file has settled. Raises `RefusedError` (404) if it does not exist."""
        await self.service.settle(target)
        return self.store.get(target)

    def wants_acl(self, method: str) -> bool:
        """Whether the answer is to have owners and access control lists; by default, that of a change has them."""
        default = "full" if method.endswith((".patch", ".update")) else ""
        return self.query.get("projection", default) == "full"

    def flag(self, key: str) -> bool:
        return self.query.get(key, "").lower() == "true"

    async def json(self, resource: str) -> Json:
        """The body, a resource of this name; an empty one gives an empty object.

        Raises:
            RefusedError: 400, it is not an object, or has fields that are not honoured.
        """
        try:
            body = await read_object(self.request, most_bytes=_MAX_JSON_BYTES, may_be_empty=True)
        except ValueError as fault:
            raise invalid(f"Parse Error: {fault}.") from None
        check_fields(resource, body)
        return body


def change_bucket(call: Call, change: Callable[[BucketRecord, int], BucketRecord]) -> BucketRecord:
    """The bucket in the path after a change, whose time `change` gets in microseconds.

    Raises:
        RefusedError: 404 without such a bucket, 412 for a condition that does not hold; also what `change` raises.
    """
    with call.store.changing() as now_us:
        bucket = call.store.bucket(call.path["bucket"])
        check_bucket(call, bucket)
        changed = replace(change(bucket, now_us), metageneration=bucket.metageneration + 1, updated_us=now_us)
        call.store.catalog.put_bucket(changed)
    call.service.apply_policy(changed)
    return changed


def check_bucket(call: Call, bucket: BucketRecord) -> None:
    """Raises `RefusedError` for a condition that does not hold: 412, or 304 for a NotMatch condition of a read."""
    conditions, number = call.conditions(), bucket.metageneration
    if conditions.metageneration not in (None, number):
        raise condition_not_met(f"ifMetagenerationMatch, where the bucket's metageneration is {number}")
    if conditions.not_metageneration == number:
        unmet = f"ifMetagenerationNotMatch is the bucket's metageneration, {number}"
        if call.request.method == "GET":
            raise RefusedError(304, "notModified", f"Not modified: {unmet}.")
        raise condition_not_met(unmet)


def check_fields(resource: str, body: Mapping[str, object]) -> None:
    """Raises `RefusedError` (400) for fields of the resource that are not honoured."""
    _refuse_any(SURFACE.body_faults(resource, body))


def _refuse_any(faults: list[str]) -> None:
    if faults:
        sentence = "; ".join(faults)
        raise invalid(f"{sentence[0].upper()}{sentence[1:]}: leave out what this names.")


def text_field(body: Mapping[str, object], key: str) -> str:
    """A string of a JSON body; empty when absent or null. Raises `RefusedError` (400) for another type."""
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"Invalid value for {key}: {value!r}; expected a string.")
    return value


def object_fields(body: Mapping[str, object]) -> Json:
    """The writable object properties of a body, null ones left out.

    Raises:
        RefusedError: 400, a property has the wrong type.
    """
    fields: Json = {}
    for key in WRITABLE_OBJECT_FIELDS:
        value = body.get(key)
        if value is not None:
            if key == "metadata":
                fields[key] = custom_metadata(value)
            elif key.endswith("Hold"):
                if not isinstance(value, bool):
                    raise invalid(f"Invalid value for {key}: {value!r}; expected true or false.")
                fields[key] = value
            else:
                fields[key] = header_field(body, key)
    return fields


def header_field(body: Mapping[str, object], key: str) -> str:
    """A property that is a header of downloads; empty if it is missing.

    Raises:
        RefusedError: 400 for control characters, for another type, and for a text that is too long for clients.
    """
    text = text_field(body, key)
    if len(text) > _MAX_HEADER_CHARACTERS or not text.replace("\t", " ").isprintable():
        expected = f"at most {_MAX_HEADER_CHARACTERS} characters, none of them a control character"
        raise invalid(f"Invalid value for {key}: {text!r:.200}; expected {expected}.")
    return text


def custom_metadata(value: object) -> dict[str, str]:
    """Custom metadata, without null values. Raises `RefusedError` (400) for values that are not strings."""
    if not isinstance(value, dict) or not all(
        text is None or isinstance(text, str) for text in value.values()
    ):
        raise invalid(f"Invalid value for metadata: {value!r}; expected an object of strings.")
    metadata = {str(key): text for key, text in value.items() if text is not None}
    if (
        sum(len((key + text).encode("utf-8", "replace")) for key, text in metadata.items())
        > _MAX_METADATA_BYTES
    ):
        raise invalid(f"Invalid value for metadata: it has more than {_MAX_METADATA_BYTES} bytes.")
    return metadata


def merged_fields(before: object, change: object) -> Json:
    """`before` changed as a JSON Merge Patch (RFC 7396) says: objects entry by entry, and null removes an entry."""
    both = dict(before) if isinstance(before, dict) else {}
    for key, value in (change if isinstance(change, dict) else {}).items():
        both[key] = merged_fields(both.get(key), value) if isinstance(value, dict) else value
    return {key: value for key, value in both.items() if value is not None}


def json_answer(resource: Mapping[str, object]) -> Response:
    return JSONResponse(dict(resource), media_type=JSON_TYPE)
