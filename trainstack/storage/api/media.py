"""Serves an object's bytes, whole or a range, without holding them in memory."""

import gzip
import os
import re
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from functools import lru_cache

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trainstack.storage.api.call import Call
from trainstack.storage.drops.scanner import DEFAULT_CONTENT_TYPE
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.preconditions import etag_of
from trainstack.storage.objects.records import ObjectRecord

_CHUNK_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
DESCRIBED = {
    "cache-control": "cacheControl",
    "content-disposition": "contentDisposition",
    "content-encoding": "contentEncoding",
    "content-language": "contentLanguage",
}
"""Headers that describe an object's bytes, with the fields that keep them."""
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class FileResponse(Response):
    """`length` bytes of an open file from `offset`, or all of a gzip file decompressed; closes the descriptor in any case."""

    def __init__(
        self, descriptor: int, *, offset: int, length: int | None, code: int, headers: dict[str, str]
    ) -> None:
        """`length` None: decompress. The number of bytes is not known before."""
        super().__init__(status_code=code, headers=headers)
        if length is None:
            del self.headers["content-length"]
        else:
            self.headers["content-length"] = str(length)
        self._descriptor, self._offset, self._length = descriptor, offset, length

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            last = b""
            if scope["method"] != "HEAD":
                for chunk in self._chunks():
                    if last:
                        await send({"type": "http.response.body", "body": last, "more_body": True})
                    last = chunk
            await send({"type": "http.response.body", "body": last})
        finally:
            os.close(self._descriptor)

    def _chunks(self) -> Iterator[bytes]:
        if self._length is None:
            with os.fdopen(os.dup(self._descriptor), "rb") as packed, gzip.open(packed) as file:
                yield from iter(lambda: file.read(_CHUNK_BYTES), b"")
            return
        position, end = self._offset, self._offset + self._length
        while position < end and (
            chunk := os.pread(self._descriptor, min(_CHUNK_BYTES, end - position), position)
        ):
            position += len(chunk)
            yield chunk


def _is_to_be_decompressed(call: Call, stored: ObjectRecord, descriptor: int) -> bool:
    return (
        stored.fields.get("contentEncoding") == "gzip"
        and "no-transform" not in str(stored.fields.get("cacheControl"))
        and "gzip" not in call.request.headers.get("accept-encoding", "")
        and os.pread(descriptor, len(_GZIP), 0) == _GZIP
    )


def headers_of(stored: ObjectRecord) -> dict[str, str]:
    """The headers that identify a generation of an object."""
    return {
        "etag": etag_of(stored),
        "x-goog-generation": str(stored.generation),
        "x-goog-metageneration": str(stored.metageneration),
        "x-goog-hash": f"crc32c={stored.crc32c}" + (f",md5={stored.md5}" if stored.md5 else ""),
        "x-goog-stored-content-length": str(stored.size),
    }


@lru_cache(maxsize=2048)  # as many as records that the catalog keeps
def _media_headers(stored: ObjectRecord) -> Mapping[str, str]:
    """The headers of a download of all bytes."""
    headers = {
        **headers_of(stored),
        "content-type": stored.content_type or DEFAULT_CONTENT_TYPE,
        "last-modified": formatdate(stored.updated_us // 1_000_000, usegmt=True),
        "accept-ranges": "bytes",
        "x-goog-storage-class": str(stored.fields.get("storageClass", "STANDARD")),
        "x-goog-stored-content-encoding": str(stored.fields.get("contentEncoding") or "identity"),
    }
    for header, key in DESCRIBED.items():
        if value := stored.fields.get(key):
            headers[header] = str(value)
    return {name: _header_value(value) for name, value in headers.items()}


def media(call: Call, stored: ObjectRecord) -> Response:
    """The requested bytes as stored; `content-encoding` describes them.

    An object that is compressed with gzip is decompressed for clients that do not accept that, and ranges are ignored.
    Source: https://cloud.google.com/storage/docs/transcoding

    Raises:
        RefusedError: 416 for a range outside the object, 503 while its file is being rewritten.
    """
    headers = dict(_media_headers(stored))
    descriptor = call.store.open(stored)
    if _is_to_be_decompressed(call, stored, descriptor):
        del headers["content-encoding"], headers["accept-ranges"]
        return FileResponse(descriptor, offset=0, length=None, code=200, headers=headers)
    try:
        asked = _range(call.request.headers.get("range", ""), stored.size)
    except RefusedError:
        os.close(descriptor)
        raise
    offset, length = asked or (0, stored.size)
    if asked:
        headers["content-range"] = f"bytes {offset}-{offset + length - 1}/{stored.size}"
    code = 206 if asked else 200
    return FileResponse(descriptor, offset=offset, length=length, code=code, headers=headers)


def _range(header: str, size: int) -> tuple[int, int] | None:
    """Offset and length; None for the whole object, also if the header is invalid (RFC 9110, 14.2)."""
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if not match or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        offset, end = max(0, size - int(last)), size
    else:
        offset, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < offset:
            return None
    if offset >= end:
        raise RefusedError(
            416,
            "requestedRangeNotSatisfiable",
            f"The requested range {header!r} cannot be satisfied: the object has {size} bytes.",
            headers={"content-range": f"bytes */{size}"},  # by which clients know an empty object
        )
    return offset, end - offset


def _header_value(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip().encode("utf-8").decode("latin-1")
