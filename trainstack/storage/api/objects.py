"""Object metadata: get, list, patch, delete."""

import dataclasses

from starlette.responses import Response

from trainstack.storage.api.call import (
    Call,
    Json,
    custom_metadata,
    json_answer,
    merged_fields,
    no_content,
    object_fields,
    text_field,
)
from trainstack.storage.api.media import media
from trainstack.storage.drops.scanner import DEFAULT_CONTENT_TYPE
from trainstack.storage.objects.errors import invalid
from trainstack.storage.objects.listing import (
    MAX_RESULTS,
    ListQuery,
    ObjectPage,
    list_page,
    page_token,
    resume_of,
)
from trainstack.storage.objects.names import is_plain
from trainstack.storage.objects.preconditions import whole_number
from trainstack.storage.objects.records import ObjectRecord
from trainstack.storage.objects.resource import object_json
from trainstack.storage.store import ObjectStore

_ROUNDS = 3


async def get(call: Call) -> Response:
    """The resource, or with `alt=media` the bytes."""
    stored = await _read(call)
    if call.query.get("alt") == "media":
        return media(call, stored)
    return json_answer(object_json(stored, call.base_url))


async def download(call: Call) -> Response:
    """The bytes, at the address of `mediaLink`."""
    return media(call, await _read(call))


async def list_all(call: Call) -> Response:
    """The page, after recording what other processes added, removed or changed.

    All of it in the bucket's threads: a page of 1000 objects takes so long that eight callers would keep the event loop
    from everyone else.
    """
    bucket, query = call.path["bucket"], _list_query(call)
    threads = call.service.threads
    await threads.wait_for_refresh(bucket, query.prefix)
    for _ in range(_ROUNDS):
        page, rewritten = await threads.run(bucket, _page, call.store, bucket, query)
        # Files that are being written keep their recorded state.
        if not any([await threads.wait_for_look(bucket, name) for name in rewritten]):
            break
    return await threads.run(bucket, _page_answer, page, call.base_url)


async def patch(call: Call) -> Response:
    """Merge: null removes a property or an entry of the custom metadata."""
    body = await call.json("Object")

    def merge(live: ObjectRecord) -> ObjectRecord:
        fields = {key: value for key, value in live.fields.items() if key not in body} | object_fields(body)
        metadata = body.get("metadata")
        if metadata is not None:
            custom_metadata(metadata)  # refuses other types
            fields["metadata"] = merged_fields(live.fields.get("metadata"), metadata)
        if not fields.get("metadata"):
            fields.pop("metadata", None)
        content_type = text_field(body, "contentType") if "contentType" in body else live.content_type
        return dataclasses.replace(live, fields=fields, content_type=content_type or DEFAULT_CONTENT_TYPE)

    target = call.target()
    changed = await call.service.run_when_settled(
        lambda strict: call.store.patch(target, merge, strict=strict)
    )
    return json_answer(object_json(changed, call.base_url))


async def delete(call: Call) -> Response:
    target = call.target()
    await call.service.run_when_settled(lambda strict: call.store.delete(target, strict=strict))
    return no_content()


async def _read(call: Call) -> ObjectRecord:
    target = call.target()
    stored = await call.stored_object(target)
    target.conditions.check_read(stored)
    return stored


def _page(store: ObjectStore, bucket: str, query: ListQuery) -> tuple[ObjectPage, list[str]]:
    """The page as recorded, and the names in it whose files are no longer as recorded."""

    def scan(start: str, end: str, limit: int) -> list[ObjectRecord]:
        return store.catalog.scan(bucket, start=start, end=end, limit=limit)

    page, folder = list_page(scan, query), store.folder(bucket)
    rewritten = [
        item.name
        for item in page.items
        if not item.aside and is_plain(item.name) and folder.fingerprint(item.name) != item.fingerprint
    ]
    return page, rewritten


def _page_answer(page: ObjectPage, base_url: str) -> Response:
    answer: Json = {"kind": "storage#objects"}
    if page.prefixes:
        answer["prefixes"] = page.prefixes
    if page.items:
        answer["items"] = [object_json(stored, base_url) for stored in page.items]
    if page.resume:
        answer["nextPageToken"] = page_token(page.resume)
    return json_answer(answer)


def _list_query(call: Call) -> ListQuery:
    query = call.query
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
    )
