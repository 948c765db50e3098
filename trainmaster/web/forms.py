"""Reads the fields of a request that changes something."""

import json
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from trainmaster.client.errors import ClientRefused

BODY_MAX = 2 * 1024 * 1024
"""Bytes of a form or of a JSON body: a request may have 1 MiB, and a form's escapes lengthen it."""
FIELDS_MAX = 200
FORM_TYPE, JSON_TYPE = "application/x-www-form-urlencoded", "application/json"


class TooLarge(ClientRefused):
    """A body of more than BODY_MAX bytes."""


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form or of a flat JSON object.

    Raises:
        TooLarge: the body has more than BODY_MAX bytes.
        ClientRefused: the body is neither, or the connection was closed before its end.
    """
    body = await _body(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON_TYPE:
        try:
            found = json.loads(body or b"{}")
            json.dumps(found, ensure_ascii=False).encode()  # a lone half of a surrogate pair is not a text
        except (ValueError, RecursionError) as error:
            raise ClientRefused(f"The body is not JSON: {error}") from error
        if not isinstance(found, dict) or not all(
            isinstance(value, str | bool | int) for value in found.values()
        ):
            raise ClientRefused("Expected a JSON object of texts, whole numbers, true and false.")
        return {
            str(name): each if isinstance(each, str) else json.dumps(each) for name, each in found.items()
        }
    if body and kind != FORM_TYPE:
        raise ClientRefused(f"Expected a body of type {FORM_TYPE} or {JSON_TYPE}, found {kind[:100]!r}.")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
    except ValueError as error:
        raise ClientRefused(f"The body is not a form: {error}") from error


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > BODY_MAX:
                raise TooLarge(f"The body has more than {BODY_MAX} bytes.")
    except ClientDisconnect as error:
        raise ClientRefused("The connection was closed before the end of the body.") from error
    return bytes(body)
