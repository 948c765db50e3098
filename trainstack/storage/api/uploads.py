"""Object insertion in one request: `uploadType=media` and `uploadType=multipart`; also starts resumable uploads."""

from collections.abc import AsyncIterator

from starlette.responses import Response

from trainstack.storage.api.call import Call, json_answer, json_object
from trainstack.storage.api.insertion import insertion_of, put
from trainstack.storage.api.multipart import RelatedParser, boundary_of
from trainstack.storage.api.resumable import begin
from trainstack.storage.objects.errors import invalid
from trainstack.storage.objects.resource import object_json
from trainstack.storage.objects.staging import Staged


async def insert(call: Call) -> Response:
    """Upload an object as `uploadType` specifies."""
    match call.query.get("uploadType"):
        case "multipart":
            return await _multipart(call)
        case "resumable":
            return await begin(call, await call.json())
        case "media":
            return await _media(call)
        case other:
            raise invalid(
                f"Invalid value for uploadType: {other!r}; expected 'media', 'multipart' or 'resumable'."
            )


async def _media(call: Call) -> Response:
    with Staged(call.store.uploads_path) as staged:
        async for chunk in call.chunks():
            staged.write(chunk)
        stored = await put(call, staged, insertion_of(call, {}, call.request.headers.get("content-type", "")))
    return json_answer(object_json(stored, call.base_url))


async def _multipart(call: Call) -> Response:
    parser = RelatedParser(boundary_of(call.request.headers.get("content-type", "")))
    with Staged(call.store.uploads_path) as staged:
        async for media in _media_of(call, parser):
            staged.write(media)
        insertion = insertion_of(call, json_object(parser.metadata), parser.media_type)
        stored = await put(call, staged, insertion)
    return json_answer(object_json(stored, call.base_url))


async def _media_of(call: Call, parser: RelatedParser) -> AsyncIterator[bytes]:
    async for chunk in call.chunks():
        for media in parser.feed(chunk):
            yield media
    parser.finish()
