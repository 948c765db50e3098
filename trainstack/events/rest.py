"""JSON calls to the REST surfaces of a stack."""

import json
from typing import Any

import requests

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
    with requests.Session() as session:
        session.trust_env = False  # of this machine: by no proxy
        answer = session.request(method, base_url + path, json=body, timeout=TIMEOUT_S)
    if not answer.ok:
        raise CallRefusedError(f"{method} {base_url}{path}", answer.status_code, answer.text)
    return answer.json() if answer.content else None


def _reason(body: str) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body
