"""A service of the local stack before the judge: every request that it takes, and every answer that it gives."""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from google.cloud.logging_v2.types import WriteLogEntriesPartialErrors
from google.protobuf.json_format import ParseDict, ParseError
from google.rpc import code_pb2, error_details_pb2, status_pb2
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.judges.discovery import Api, api
from trainstack.http import LiveService

DETAILS = (WriteLogEntriesPartialErrors, error_details_pb2.ErrorInfo)
"""What a refusal may hold besides its sentence. A message is found by its name only once it is imported."""
_RESUMED = ("PUT", "DELETE")
"""The verbs that continue and cancel an upload, which no discovery document has:
https://cloud.google.com/storage/docs/resumable-uploads"""


class Judged:
    """An ASGI application that passes everything on to `app`.

    Attributes:
        faults: what the APIs' documents say against requests that were accepted, and against all answers.
        methods: the methods that were called and answered with success, each with its API.
    """

    def __init__(self, app: ASGIApp, *apis: str) -> None:
        self._app = app
        self._apis = [api(name) for name in apis]
        self.faults: list[str] = []
        self.methods: set[tuple[str, str]] = set()

    async def start(self, url: str = "") -> None:
        if isinstance(self._app, LiveService):
            await self._app.start(url)

    async def stop(self) -> None:
        if isinstance(self._app, LiveService):
            await self._app.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken, given, heads, kept_back = b"", bytearray(), list[Message](), list[Message]()
        more = True
        while more:  # before the application, which may answer without reading
            message = await receive()
            taken += message.get("body", b"")
            more = message.get("more_body", False)
        whole = [{"type": "http.request", "body": taken, "more_body": False}]

        async def received() -> Message:
            return whole.pop() if whole else await receive()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                heads.append(message)
                kept_back.append(message)  # all that a client reads of an answer without a body
                return
            given.extend(message.get("body", b""))
            if not message.get("more_body"):
                self._judge(scope, taken, heads[0], bytes(given))
            if kept_back:
                await send(kept_back.pop())
            await send(message)

        await self._app(scope, received, sent)

    def _judge(self, scope: Scope, taken: bytes, head: Message, given: bytes) -> None:
        verb, path = scope["method"], scope["raw_path"].decode()
        url = f"{path}?{scope['query_string'].decode()}"
        answer = json.loads(given) if given and _is_json(head) and "alt=media" not in url else None
        if head["status"] >= 400:
            faults = list(error_faults(head["status"], answer))
        else:
            faults = list(
                self._call_faults(verb, url, json.loads(taken) if _is_json(scope) and taken else None, answer)
            )
        self.faults += [f"{verb} {url}: {fault}" for fault in faults]

    def _call_faults(self, verb: str, url: str, body: object, answer: object) -> Iterator[str]:
        if "upload_id=" in url and verb in _RESUMED:
            verb, url, body = "POST", urlsplit(url).path, {"name": "of the session"}
        document, method = self._method(verb, urlsplit(url).path)
        if document is None:
            yield "no API has this method"
            return
        self.methods.add((document.name, method))
        yield from document.request_faults(verb, url, body)
        if answer is not None:
            yield from document.answer_faults(verb, url, answer)

    def _method(self, verb: str, path: str) -> tuple[Api | None, str]:
        for document in self._apis:
            try:
                return document, document.method(verb, path)
            except LookupError:
                continue
        return None, ""


def error_faults(status: int, body: object) -> Iterator[str]:
    """What is wrong with the body of a refusal: https://cloud.google.com/apis/design/errors#http_mapping

    Cloud Storage has a list `errors` in place of a canonical code:
    https://cloud.google.com/storage/docs/json_api/v1/status-codes
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or error.get("code") != status or not error.get("message"):
        yield f"no error of status {status} with a message: {body!r:.200}"
        return
    if unknown := error.keys() - {"code", "message", "status", "details", "errors"}:
        yield f"an error has no {sorted(unknown)}"
    if "status" in error and error["status"] not in code_pb2.Code.keys():  # noqa: SIM118  # no mapping
        yield f"{error['status']} is not a canonical code"
    if not {"status", "errors"} & error.keys():
        yield "neither a canonical code nor a list of errors"
    for each in error.get("errors", ()):
        if (
            not {"message", "domain", "reason"}
            <= each.keys()
            <= {"message", "domain", "reason", "location", "locationType"}
        ):
            yield f"not an item of `errors`: {each}"
    try:
        ParseDict({"details": error.get("details", [])}, status_pb2.Status())
    except ParseError as wrong:
        yield f"details: {wrong}"


def _is_json(message: Scope | Message) -> bool:
    return any(
        name.lower() == b"content-type" and b"json" in value for name, value in message.get("headers", ())
    )
