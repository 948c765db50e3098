"""Object metadata: get, list, patch, update, delete."""

import dataclasses
import json

from starlette.responses import Response

from trainstack.storage.api.access_controls import changed_acl
from trainstack.storage.api.call import (
    JSON_TYPE,
    Call,
    Json,
    custom_metadata,
    header_field,
    json_answer,
    merged_fields,
    object_fields,
)
from trainstack.storage.api.encryption import check_key, key_hash
from trainstack.storage.api.media import media
from trainstack.storage.objects.errors import RefusedError, invalid
from trainstack.storage.objects.listing import (
    MAX_RESULTS,
    ListQuery,
    list_page,
    page_token,
    resume_of,
)
from trainstack.storage.objects.preconditions import whole_number
from trainstack.storage.objects.protection import with_retention
from trainstack.storage.objects.records import ObjectRecord
from trainstack.storage.objects.resource import WRITABLE_OBJECT_FIELDS, object_json, object_text

_ROUNDS = 3


async def get(call: Call) -> Response:
    """The resource, or with `alt=media` the bytes."""
    if call.query.get("alt") == "media":
        return await download(call)
    stored, hashed = await _read(call), key_hash(call.request.headers)
    if hashed:
        check_key(stored, hashed)
    return Response(object_text(stored, call.base_url, bool(hashed)), media_type=JSON_TYPE)


async def download(call: Call) -> Response:
    """The bytes, at the address of `mediaLink`."""
    if call.flag("softDeleted"):
        raise invalid("The bytes of a soft-deleted object cannot be read; restore it.")
    stored = await _read(call)
    check_key(stored, key_hash(call.request.headers))
    return media(call, stored)


async def list_all(call: Call) -> Response:
    """The page, after recording what other processes added, removed or changed.

    All of it in the bucket's threads: a page of 1000 objects takes so long that eight callers would keep the event loop
    from everyone else.
    """
    bucket, query = call.path["bucket"], _list_query(call)
    threads = call.service.threads
    await threads.wait_for_refresh(bucket, query.prefix)
    for _ in range(_ROUNDS):
        answer, rewritten = await threads.run(bucket, _page, call, bucket, query)
        # Files that are being written keep their recorded state.
        if not any([await threads.wait_for_look(bucket, name) for name in rewritten]):
            break
    return answer


async def patch(call: Call) -> Response:
    """Merge: null removes a property or an entry of the custom metadata. An update, by PUT, begins with none of them."""
    body = await call.json("Object")
    removed = WRITABLE_OBJECT_FIELDS if call.request.method == "PUT" else body

    def merge(before: ObjectRecord) -> ObjectRecord:
        kept = {key: value for key, value in before.fields.items() if key not in removed}
        fields = kept | object_fields(body)
        metadata = body.get("metadata")
        if metadata is not None:
            custom_metadata(metadata)  # refuses other types
            base = before.fields.get("metadata") if removed is body else None
            fields["metadata"] = merged_fields(base, metadata)
        if not fields.get("metadata"):
            fields.pop("metadata", None)
        is_kept = removed is body and "contentType" not in body
        content_type = before.content_type if is_kept else header_field(body, "contentType")
        acl = changed_acl(call, before, body)
        return dataclasses.replace(before, fields=fields, content_type=content_type, acl=acl)

    target, hashed = call.target(), key_hash(call.request.headers)
    await call.service.settle(target)
    changed = call.store.patch(target, merge)
    return json_answer(object_json(changed, call.base_url, with_hashes=bool(hashed)))


async def delete(call: Call) -> Response:
    await call.service.settle(target := call.target())
    call.store.delete(target)
    return Response(status_code=204)


async def _read(call: Call) -> ObjectRecord:
    target = dataclasses.replace(call.target(), soft_deleted=call.flag("softDeleted"))
    if target.soft_deleted and target.generation is None:
        raise RefusedError(400, "required", "Required parameter: generation")
    stored = await call.stored_object(target)
    target.conditions.check_read(stored)
    return stored


def _page(call: Call, bucket: str, query: ListQuery) -> tuple[Response, list[str]]:
    """The page as recorded, and the names in it whose files are no longer as recorded."""
    store = call.store

    def scan(start: str, end: str, limit: int) -> list[ObjectRecord]:
        if not query.generations:
            return store.catalog.scan(bucket, start=start, end=end, limit=limit)
        restorable_us = store.now_us() if query.soft_deleted else 0
        return store.catalog.scan_generations(
            bucket, start=start, end=end, limit=limit, restorable_us=restorable_us
        )

    page, folder = list_page(scan, query), store.folder(bucket)
    rewritten = [
        item.name
        for item in page.items
        if item.is_live and not item.aside and folder.fingerprint(item.name) != item.fingerprint
    ]
    if (policy := store.bucket(bucket)).setting("retentionPolicy"):
        page.items = [with_retention(item, policy) for item in page.items]
    answer: Json = {"kind": "storage#objects"}
    if page.prefixes:
        answer["prefixes"] = page.prefixes
    if page.resume:
        answer["nextPageToken"] = page_token(page.resume)
    text, base_url = json.dumps(answer, ensure_ascii=False, separators=(",", ":")), call.base_url
    if page.items:
        items = ",".join([object_text(stored, base_url, False) for stored in page.items])
        text = f'{text[:-1]},"items":[{items}]}}'
    return Response(text, media_type=JSON_TYPE), rewritten


def _list_query(call: Call) -> ListQuery:
    query = call.query
    if call.flag("versions") and call.flag("softDeleted"):
        raise invalid("The parameters versions and softDeleted exclude each other.")
    limit = whole_number(query, "maxResults")
    if limit == 0:
        raise invalid("Invalid value for maxResults: '0'; expected a number of at least 1.")
    return ListQuery(
        prefix=query.get("prefix", ""),
        delimiter=query.get("delimiter", ""),
        resume=resume_of(query.get("pageToken", "")),
        start_offset=query.get("startOffset", ""),
        end_offset=query.get("endOffset", ""),
        max_results=min(limit or MAX_RESULTS, MAX_RESULTS),
        trailing_delimiter=call.flag("includeTrailingDelimiter"),
        glob=query.get("matchGlob", ""),
        generations=call.flag("versions") or call.flag("softDeleted"),
        soft_deleted=call.flag("softDeleted"),
    )
