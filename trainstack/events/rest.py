"""JSON calls to the REST surfaces of a stack."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30


class CallRefusedError(Exception):
    """A service answered with an error; `status` is the HTTP status, `reason` the service's message."""

    def __init__(self, call: str, status: int, body: str) -> None:
        super().__init__(f"{call} answered {status}: {body}")
        self.status = status
        self.reason = _reason(body)


def call(method: str, base_url: str, path: str, body: object = None) -> Any:
    """The response's JSON value, None if it is empty. Blocks. `Any`, because the caller knows the resource.

    Args:
        method: the HTTP method.
        base_url: `http://host:port`.
        path: path and query, already percent-encoded.
        body: a JSON value; None for no body.

    Raises:
        CallRefusedError: the status is 4xx or 5xx.
        OSError: no server answers at the address.
    """
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=TIMEOUT_S)
    try:
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, body=payload, headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    if answer.status >= 400:  # noqa: PLR2004  # HTTP's error classes
        raise CallRefusedError(f"{method} {base_url}{path}", answer.status, text)
    return json.loads(text) if text else None


def _reason(body: str) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body
