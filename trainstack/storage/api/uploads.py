"""Uploads: media and multipart ones in one request, resumable ones that begin, send chunks, query the progress, and cancel.

Source: https://cloud.google.com/storage/docs/performing-resumable-uploads
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response

from trainstack.json_bodies import json_object
from trainstack.storage.api.call import Call, Json, check_fields, json_answer
from trainstack.storage.api.insertion import insertion_of, put
from trainstack.storage.api.multipart import RelatedParser, boundary_of
from trainstack.storage.objects.errors import invalid
from trainstack.storage.objects.resource import object_json
from trainstack.storage.objects.staging import Staged
from trainstack.storage.service import Upload

_RESUME_INCOMPLETE = 308
_CANCELLED = 499
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(?:(\d+)|\*)")


@dataclass(frozen=True, kw_only=True)
class ContentRange:
    """The offset of a chunk (None: it has no bytes) and the total size (None: not known yet).

    `rest` means that the chunk completes the upload, whatever its size.
    """

    first: int | None
    total: int | None
    rest: bool = False


async def insert(call: Call) -> Response:
    """Upload an object as `uploadType` specifies."""
    match call.query.get("uploadType"):
        case "multipart":
            return await _multipart(call)
        case "resumable":
            return await begin(call, await call.json("Object"))
        case "media":
            return await _media(call)
        case other:
            raise invalid(
                f"Invalid value for uploadType: {other!r}; expected 'media', 'multipart' or 'resumable'."
            )


async def _media(call: Call) -> Response:
    with Staged(call.store.uploads_path) as staged:
        async for chunk in call.request.stream():
            staged.write(chunk)
        stored = await put(call, staged, insertion_of(call, {}, call.request.headers.get("content-type", "")))
    return json_answer(object_json(stored, call.base_url))


async def _multipart(call: Call) -> Response:
    parser = RelatedParser(boundary_of(call.request.headers.get("content-type", "")))
    with Staged(call.store.uploads_path) as staged:
        async for media in _media_of(call, parser):
            staged.write(media)
        try:
            metadata = json_object(parser.metadata.strip() or b"{}")
        except ValueError as fault:
            raise invalid(f"Parse Error: {fault}.") from None
        check_fields("Object", metadata)
        stored = await put(call, staged, insertion_of(call, metadata, parser.media_type))
    return json_answer(object_json(stored, call.base_url))


async def _media_of(call: Call, parser: RelatedParser) -> AsyncIterator[bytes]:
    async for chunk in call.request.stream():
        for media in parser.feed(chunk):
            yield media
    parser.finish()


async def begin(call: Call, metadata: Json) -> Response:
    """Create a session; its URL is in `Location`. Preconditions are checked now, and again at the end."""
    insertion = insertion_of(call, metadata, call.request.headers.get("x-upload-content-type", ""))
    await call.service.settle(insertion)
    insertion.conditions.check_write(call.store.find(insertion.bucket, insertion.name))
    upload_id = call.service.uploads.begin(insertion)
    location = (
        f"{call.base_url}/upload/storage/v1/b/{insertion.bucket}/o"
        f"?uploadType=resumable&name={quote(insertion.name, safe='')}&upload_id={upload_id}"
    )
    return Response(headers={"location": location, "x-guploader-uploadid": upload_id})


async def send(call: Call) -> Response:
    """Accept a chunk, or report the progress; the last byte creates the object.

    Bytes already received are skipped; a chunk that would leave a gap is ignored.
    """
    upload_id, upload = _upload(call)
    async with upload.lock:
        if upload.result:
            async for _ in call.request.stream():
                pass
            return json_answer(object_json(upload.result, call.base_url))
        asked = _content_range(call.request.headers.get("content-range", ""))
        await _append(call, upload.staged, asked)
        size = upload.staged.size
        total = size if asked.rest else asked.total
        if total is None or size < total:
            return _incomplete(call, upload.staged)
        if size > total:
            call.service.uploads.cancel(upload_id)
            raise invalid(f"Invalid upload: {size} bytes were sent, but Content-Range says {total}.")
        upload.result = await put(call, upload.staged, upload.insertion)
        return json_answer(object_json(upload.result, call.base_url))


async def cancel(call: Call) -> Response:
    """Delete the session."""
    upload_id, upload = _upload(call)
    async with upload.lock:
        call.service.uploads.cancel(upload_id)
    return Response(status_code=_CANCELLED)


def _upload(call: Call) -> tuple[str, Upload]:
    upload_id = call.query.get("upload_id", "")
    return upload_id, call.service.uploads.find(upload_id, bucket=call.path["bucket"])


async def _append(call: Call, staged: Staged, asked: ContentRange) -> None:
    skip = 0 if asked.first is None else staged.size - asked.first
    async for chunk in call.request.stream():
        if skip < 0 or asked.first is None:
            continue  # a gap, or a progress query that has bytes it should not
        staged.write(chunk[skip:])
        skip = max(0, skip - len(chunk))


def _incomplete(call: Call, staged: Staged) -> Response:
    """308, or for Google's Go clients (google-api-go-client, internal/gensupport/resumable.go) 200 with that in a header."""
    headers = {"range": f"bytes=0-{staged.size - 1}"} if staged.size else {}
    if call.request.headers.get("x-guploader-no-308") == "yes":
        return Response(headers={**headers, "x-http-status-code-override": str(_RESUME_INCOMPLETE)})
    return Response(status_code=_RESUME_INCOMPLETE, headers=headers)


def _content_range(header: str) -> ContentRange:
    """Parse the header; without it, the body is the whole object."""
    if not header:
        return ContentRange(first=0, total=None, rest=True)
    match = _CONTENT_RANGE.fullmatch(header.strip())
    if not match:
        raise invalid(
            f"Invalid Content-Range: {header!r}; expected 'bytes FIRST-LAST/TOTAL', with '*' for what is unknown."
        )
    first, _, total = match.groups()
    return ContentRange(
        first=None if first is None else int(first), total=None if total is None else int(total)
    )
