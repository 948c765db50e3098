"""Batches: up to 100 requests in one of `multipart/mixed`, which are routed, authorized and answered like any other.

Lines end with CRLF or LF, and python-storage writes whole URLs, gcsfs paths. Source:
https://cloud.google.com/storage/docs/batch
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Scope

from trainstack.injections.http import answer_of
from trainstack.json_bodies import google_error, read_body
from trainstack.storage.api.call import Call
from trainstack.storage.api.multipart import boundary_of, fields_of
from trainstack.storage.objects.errors import invalid

_MAX_REQUESTS = 100
_MAX_BYTES = 10_000_000
_BOUNDARY = "batch_of_the_local_stack"
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(r"([A-Z]+) (\S+) HTTP/1\.[01]")
_ROOT = "/storage/v1/"


async def run(call: Call) -> Response:
    """The responses in the order of the requests."""
    boundary = boundary_of(call.request.headers.get("content-type", ""))
    try:
        body = await read_body(call.request, most_bytes=_MAX_BYTES)
    except ValueError as fault:
        raise invalid(f"Invalid batch: {fault}.") from None
    answers = [await _answer(call, part) for part in _parts(body, boundary)]
    closing = f"--{_BOUNDARY}--\r\n".encode()
    return Response(b"".join(answers) + closing, media_type=f"multipart/mixed; boundary={_BOUNDARY}")


def _parts(body: bytes, boundary: bytes) -> list[bytes]:
    _preamble, *parts = re.split(rb"(?:\A|\r?\n)--" + re.escape(boundary), body, maxsplit=_MAX_REQUESTS + 1)
    if not parts or not parts[-1].startswith(b"--"):
        raise invalid("Invalid batch: it ends before the closing boundary, or has more than 100 requests.")
    return parts[:-1]


async def _answer(call: Call, part: bytes) -> bytes:
    """One part of the response: the answer to the request in this one."""
    head, _, request = _split(part)
    content_id = fields_of(head).get(b"content-id", b"").strip(b"<>")
    try:
        scope, body = _inner(call.request.scope, request)
    except ValueError as fault:
        messages = await answer_of(google_error(400, str(fault), reason="invalid"), call.request.scope, b"")
    else:
        messages = await answer_of(call.request.app, scope, body)
    if not messages:
        raise ClientDisconnect  # an injection has closed the connection
    answer_id = b"Content-ID: <response-%b>\r\n" % content_id if content_id else b""
    opening = b"--%b\r\nContent-Type: application/http\r\n%b\r\n" % (_BOUNDARY.encode(), answer_id)
    return opening + b"".join(_lines(messages)) + b"\r\n"


def _lines(messages: list[Message]) -> Iterator[bytes]:
    start, *rest = messages
    code = start["status"]
    reason = next((status.phrase for status in HTTPStatus if status == code), "Unknown")
    yield f"HTTP/1.1 {code} {reason}\r\n".encode()
    for name, value in start["headers"]:
        yield b"%b: %b\r\n" % (name, value)
    yield b"\r\n"
    yield from (message.get("body", b"") for message in rest)


def _inner(outer: Scope, request: bytes) -> tuple[Scope, bytes]:
    """A part's request as a scope, with the whole batch's headers where it has none, and its body.

    Raises:
        ValueError: it is not a request that may be in a batch.
    """
    head, _, body = _split(request.lstrip())
    line, _, fields = head.partition(b"\n")
    match = _REQUEST_LINE.fullmatch(line.strip().decode("latin-1"))
    if not match:
        raise ValueError(f"Invalid request in a batch: {line[:200]!r}; expected METHOD PATH HTTP/1.1.")
    url = urlsplit(match[2])
    if not url.path.startswith(_ROOT) or "alt=media" in url.query:
        raise ValueError(f"A batch has requests for {_ROOT}…, without uploads and downloads: {url.path!r}.")
    headers = {name: value for name, value in outer["headers"] if name != b"content-type"}
    headers |= {**fields_of(fields), b"content-length": str(len(body)).encode()}
    raw = url.path.encode("ascii", errors="replace")
    scope = {
        **outer,
        "method": match[1],
        "path": unquote(url.path),
        "raw_path": raw,
        "query_string": url.query.encode(),
        "headers": list(headers.items()),
    }
    return scope, body


def _split(text: bytes) -> tuple[bytes, bytes, bytes]:
    """A head, the blank line, and what follows; the blank line may be missing."""
    match = _BLANK_LINE.search(text)
    return (text[: match.start()], match[0], text[match.end() :]) if match else (text, b"", b"")
