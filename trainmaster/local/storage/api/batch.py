"""Batches: up to 100 calls in one `multipart/mixed` request, answered one by one in order.

Source: https://cloud.google.com/storage/docs/batch
"""

import email
import email.policy
import re
from email.message import Message

from starlette.responses import Response
from starlette.types import ASGIApp
from starlette.types import Message as AsgiMessage

from trainmaster.local.storage.api.call import Call
from trainmaster.local.storage.objects.errors import invalid

_MAX_CALLS = 100
_BOUNDARY = "batch_answers"
_HOST = re.compile(r"https?://[^/]+")  # Python's client names its targets in full


async def batch(call: Call) -> Response:
    """Each part's answer; a part's failure is its own."""
    content_type = call.request.headers.get("content-type", "")
    body = b"".join([chunk async for chunk in call.chunks()])
    envelope = email.message_from_bytes(
        b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body, policy=email.policy.HTTP
    )
    parts = envelope.get_payload()
    if not isinstance(parts, list) or not 0 < len(parts) <= _MAX_CALLS:
        raise invalid(f"Invalid batch: multipart/mixed with 1 to {_MAX_CALLS} parts is expected.")
    answers = [await _answer(call, part) for part in parts if isinstance(part, Message)]
    text = b"".join(b"--" + _BOUNDARY.encode() + b"\r\n" + answer + b"\r\n" for answer in answers)
    return Response(
        text + b"--" + _BOUNDARY.encode() + b"--\r\n",
        headers={"content-type": f"multipart/mixed; boundary={_BOUNDARY}"},
    )


async def _answer(call: Call, part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        raise invalid("Invalid batch: every part is an HTTP request of type application/http.")
    line, _, rest = payload.lstrip().replace(b"\r\n", b"\n").partition(b"\n")
    head, _, body = rest.partition(b"\n\n")
    status, headers, answer = await _ask(call.request.app, call, line, head, body)
    lines = [b"Content-Type: application/http"]
    if asked_id := part.get("Content-ID", ""):
        lines.append(f"Content-ID: <response-{asked_id.strip('<>')}>".encode())
    lines += [
        b"",
        b"HTTP/1.1 %d Answer" % status,
        *(name + b": " + value for name, value in headers),
        b"",
        answer,
    ]
    return b"\r\n".join(lines)


async def _ask(
    app: ASGIApp, call: Call, line: bytes, head: bytes, body: bytes
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    try:
        method, target, *_ = line.decode("ascii").split(" ")
    except ValueError:
        raise invalid(f"Invalid batch: {line!r} is no request line.") from None
    path, _, query = _HOST.sub("", target).partition("?")
    headers = [
        (name.strip().lower(), value.strip())
        for name, colon, value in (each.partition(b":") for each in head.split(b"\n"))
        if colon
    ]
    scope = {
        **call.request.scope,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [each for each in headers if each[0] != b"host"]
        + [(b"host", call.request.headers["host"].encode())],
    }
    sent: list[AsgiMessage] = []

    async def receive() -> AsgiMessage:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: AsgiMessage) -> None:
        sent.append(message)

    await app(scope, receive, send)
    answer = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], list(sent[0]["headers"]), answer
