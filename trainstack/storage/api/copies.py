"""Objects created from other objects: copyTo, rewriteTo, moveTo, restore, compose."""

import dataclasses
from typing import Any

from starlette.responses import Response

from trainstack.storage.api.call import (
    Call,
    Json,
    check_fields,
    header_field,
    json_answer,
    object_fields,
    text_field,
)
from trainstack.storage.api.encryption import check_key, key_hash, new_encryption
from trainstack.storage.api.insertion import new_insertion, put
from trainstack.storage.authorization import may_call
from trainstack.storage.drops.scanner import DEFAULT_CONTENT_TYPE
from trainstack.storage.objects.errors import RefusedError, being_written, invalid
from trainstack.storage.objects.names import object_fault
from trainstack.storage.objects.preconditions import (
    Insertion,
    ObjectTarget,
    preconditions_from,
    whole_number,
)
from trainstack.storage.objects.records import ObjectRecord
from trainstack.storage.objects.resource import object_json
from trainstack.storage.objects.staging import Staged

_MAX_SOURCES = 32
_DESCRIPTIVE = (
    *("contentType", "metadata", "cacheControl"),
    *("contentDisposition", "contentEncoding", "contentLanguage"),
)


async def copy(call: Call) -> Response:
    """The copy's resource."""
    return json_answer(object_json(await _copy_object(call), call.base_url))


async def rewrite(call: Call) -> Response:
    """As `copy`; always completes in one call."""
    stored = await _copy_object(call)
    return json_answer(
        {
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": str(stored.size),
            "objectSize": str(stored.size),
            "done": True,
            "resource": object_json(stored, call.base_url),
        }
    )


async def move(call: Call) -> Response:
    """The object under its new name, in one step.

    Source: https://cloud.google.com/storage/docs/json_api/v1/objects/move
    """
    source = dataclasses.replace(call.target(), conditions=preconditions_from(call.query, infix="Source"))
    stored = await _find(call, source, key_hash(call.request.headers))
    kept: Any = {"content_type": stored.content_type, "fields": stored.fields}
    insertion = new_insertion(call, source.bucket, call.path["to_object"], {}, **kept)
    if fault := object_fault(insertion.name):
        raise invalid(fault)
    if source.name == insertion.name:
        raise invalid("The source and destination objects must have different names.")
    await call.service.settle(source, insertion)
    return json_answer(object_json(call.store.move(source, insertion), call.base_url))


async def restore(call: Call) -> Response:
    """A live copy of a soft-deleted generation, which stays.

    Source: https://cloud.google.com/storage/docs/json_api/v1/objects/restore
    """
    target = dataclasses.replace(call.target(), soft_deleted=True)
    if target.generation is None:
        raise RefusedError(400, "required", "Required parameter: generation")
    source = await call.stored_object(target)
    kept: Any = {"content_type": source.content_type, "fields": source.fields}
    insertion = new_insertion(call, source.bucket, target.name, {}, **kept)
    restored = await _put_copy(call, source, insertion)
    return json_answer(object_json(restored, call.base_url, with_hashes=False))


async def _put_copy(call: Call, source: ObjectRecord, insertion: Insertion) -> ObjectRecord:
    with Staged(call.store.uploads_path) as staged:
        await call.service.threads.run(source.bucket, _append, call, source, staged)
        insertion = dataclasses.replace(insertion, crc32c=source.crc32c)
        return await put(call, staged, insertion, composite=not source.md5)


async def compose(call: Call) -> Response:
    """The concatenation of up to 32 objects of the bucket. It has a CRC32C but no MD5."""
    body = await call.json("ComposeRequest")
    bucket, name = call.path["bucket"], call.path["object"]
    sources = _sources(body, bucket)
    destination = body.get("destination") or {}
    if not isinstance(destination, dict):
        raise invalid(f"Invalid value for destination: {destination!r}; expected an object resource.")
    check_fields("Object", destination)
    for source in sources:
        path = {"bucket": source.bucket, "object": source.name}
        may_call(call.service.grants, call.store, "storage.objects.get", path, {})
    hashed = key_hash(call.request.headers)
    objects = [await _find(call, source, hashed) for source in sources]
    components = sum(int(str(component.fields.get("componentCount", 1))) for component in objects)
    with Staged(call.store.uploads_path) as staged:
        for component in objects:
            await call.service.threads.run(component.bucket, _append, call, component, staged)
        fields = object_fields(destination) | {"componentCount": components} | new_encryption(call, bucket)
        content_type = header_field(destination, "contentType")
        insertion = new_insertion(call, bucket, name, destination, content_type=content_type, fields=fields)
        stored = await put(call, staged, insertion, composite=True)
    return json_answer(object_json(stored, call.base_url))


async def _copy_object(call: Call) -> ObjectRecord:
    """The copy. Metadata in the body replaces the source's; otherwise the source's is kept.

    Its storage class, holds and encryption key are the request's, or the destination bucket's defaults.
    """
    body = await call.json("Object")
    source = await _find(
        call,
        ObjectTarget(
            bucket=call.path["bucket"],
            name=call.path["object"],
            generation=whole_number(call.query, "sourceGeneration"),
            conditions=preconditions_from(call.query, infix="Source"),
        ),
        key_hash(call.request.headers, "x-goog-copy-source-encryption"),
    )
    kept = {key: value for key, value in source.fields.items() if key in (*_DESCRIPTIVE, "customTime")}
    replaces = any(body.get(key) is not None for key in _DESCRIPTIVE)
    content_type = header_field(body, "contentType") or DEFAULT_CONTENT_TYPE
    fields = ({} if replaces else kept) | object_fields(body)
    insertion = new_insertion(
        call,
        call.path["to_bucket"],
        call.path["to_object"],
        body,
        content_type=content_type if replaces else source.content_type,
        fields=fields | new_encryption(call, call.path["to_bucket"]),
    )
    return await _put_copy(call, source, insertion)


async def _find(call: Call, source: ObjectTarget, hashed: str) -> ObjectRecord:
    stored = await call.stored_object(source)
    source.conditions.check_write(stored)
    check_key(stored, hashed)
    return stored


def _append(call: Call, source: ObjectRecord, staged: Staged) -> None:
    before = staged.size
    staged.append(call.store.open(source))
    if staged.size - before != source.size:
        raise being_written(source.bucket, source.name)


def _sources(body: Json, bucket: str) -> list[ObjectTarget]:
    listed = body.get("sourceObjects")
    if not isinstance(listed, list) or not 0 < len(listed) <= _MAX_SOURCES:
        raise invalid(f"Invalid sourceObjects: expected a list of 1 to {_MAX_SOURCES} source objects.")
    return [_source(row, bucket) for row in listed]


def _source(listed: object, bucket: str) -> ObjectTarget:
    if not isinstance(listed, dict) or not text_field(listed, "name"):
        raise invalid(f"Invalid source object: {listed!r}; expected an object with a name.")
    conditions = listed.get("objectPreconditions")
    given = {**(conditions if isinstance(conditions, dict) else {}), "generation": listed.get("generation")}
    numbers = {key: str(value) for key, value in given.items() if value is not None}
    return ObjectTarget(
        bucket=bucket,
        name=text_field(listed, "name"),
        generation=whole_number(numbers, "generation"),
        conditions=preconditions_from(numbers),
    )
