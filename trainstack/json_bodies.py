"""JSON bodies of the REST surfaces: Google's errors, and the values of requests."""

import errno
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from trainstack.errors import ApiError

_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]|[eE][+-]?[0-9]{2}|[0-9]{300}")
"""Text that may be half a surrogate pair or a number too large for a double."""

MAX_DEPTH = 100
"""Levels of a JSON value, as in Google's services: https://protobuf.dev/programming-guides/json/"""


def google_error(
    code: int,
    message: str,
    *,
    reason: str = "",
    status: str = "",
    details: Sequence[Mapping[str, object]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Google's JSON error body.

    `reason` adds the `errors` list of the older JSON APIs (Cloud Storage: `conditionNotMet`);
    `status` adds the canonical code of the newer ones (Vertex AI, Logging: `NOT_FOUND`) and `details`
    its `google.rpc` messages.
    Source: https://cloud.google.com/apis/design/errors and https://cloud.google.com/storage/docs/json_api/v1/status-codes
    """
    error: dict[str, object] = {"code": code, "message": message}
    if reason:
        error["errors"] = [{"message": message, "domain": "global", "reason": reason}]
    if status:
        error["status"] = status
    if details:
        error["details"] = list(details)
    return JSONResponse({"error": error}, status_code=code, headers=dict(headers or {}))


def not_served(call: str) -> str:
    """The sentence about a call that the stack does not imitate, such as `GET /v1/models`, over REST and gRPC."""
    return f"The local stack does not serve {call}: docs/reference/fidelity.md lists what it serves."


def refuse_call(request: Request) -> JSONResponse:
    """The answer to a method that the stack does not imitate: 400, with gRPC's code in `status`.

    Of the codes that Google's clients know, 501 is repeated by gcloud for 46 s, 503 by all of them; 404 reads as an absent
    resource and 403 as a missing permission, and code that creates what is absent acts on the former. No client repeats
    400, and all show its sentence.
    """
    host = request.headers.get("host", "")
    url = f"https://{host}" if host.endswith(".googleapis.com") else ""
    return google_error(
        400,
        not_served(f"{request.method} {url}{request.url.path}"),
        reason="notImplemented",
        status="UNIMPLEMENTED",
    )


async def answer_not_served(request: Request, _fault: Exception) -> JSONResponse:
    """Starlette's handler of requests that no route has."""
    return refuse_call(request)


async def answer_refusal(_request: object, fault: Exception) -> JSONResponse:
    """Starlette's handler of `ApiError`."""
    if not isinstance(fault, ApiError):
        raise fault
    return google_error(fault.status.http, str(fault), status=fault.status.name)


def is_disk_full(fault: BaseException) -> bool:
    return isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT)


def insufficient_storage(fault: BaseException, *, code: int = 507) -> JSONResponse:
    """507, which Google's clients report at once; they would repeat a 5xx that they know for minutes."""
    message = (
        f"The local stack's disk is full: {fault}. Free space; the stack then continues without a restart."
    )
    return google_error(code, message, reason="insufficientStorage", status="RESOURCE_EXHAUSTED")


async def refuse_disk_full(_request: object, fault: Exception, *, code: int = 507) -> JSONResponse:
    """Starlette's handler of `OSError`. Raises every other one again."""
    if not is_disk_full(fault):
        raise fault
    return insufficient_storage(fault, code=code)


async def read_body(request: Request, *, most_bytes: int) -> bytes:
    """A request's body.

    Raises:
        ValueError: it is larger; the rest is not read.
    """
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > most_bytes:
            raise ValueError(f"the body exceeds {most_bytes} bytes")
    return bytes(raw)


async def read_object(request: Request, *, most_bytes: int, may_be_empty: bool = False) -> dict[str, Any]:
    """The JSON object that is a request's body; with `may_be_empty`, no body or `null` is an object without fields.

    Raises:
        ValueError: as `read_body` and `json_object`.
    """
    raw = await read_body(request, most_bytes=most_bytes)
    return {} if may_be_empty and raw.strip() in (b"", b"null") else json_object(raw)


# Any: who reads a field checks its type.
def json_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ValueError: the text is anything else, with the reason.
    """
    try:
        value = json_value(raw)
    except ValueError as fault:
        raise ValueError(f"the body is not valid JSON: {fault}") from None
    if not isinstance(value, dict):
        raise ValueError(f"the body must be an object, found {type(value).__name__}")  # noqa: TRY004  # bad input
    return value


def json_value(raw: bytes) -> object:
    """Parse JSON. Also refuses what no response could contain: NaN, and halves of surrogate pairs.

    Raises:
        ValueError: the text is not valid JSON, with the reason.
    """
    try:
        text = raw.decode()
        value: object = json.loads(text, parse_constant=no_number)
        if is_too_deep(value):
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
        if _SUSPECT.search(raw):
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half a surrogate pair") from None
    return value


def is_too_deep(value: object) -> bool:
    """Whether JSON is nested so deeply that writing it again would exceed Python's stack. Never recurses."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            part
            for value_here in level
            if isinstance(value_here, dict | list)
            for part in (value_here.values() if isinstance(value_here, dict) else value_here)
        ]
        if not level:
            return False
    return any(isinstance(value_here, dict | list) for value_here in level)


def finite_number(text: str) -> float:
    """For `parse_float` of `json.loads`. Raises `ValueError` for a number that is too large, such as 1e400."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number


def no_number(name: str) -> object:
    """For `parse_constant` of `json.loads`. Raises `ValueError`."""
    raise ValueError(f"{name} is not a JSON number")
