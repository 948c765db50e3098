"""Injections around an ASGI application, and the local-only path that controls them.

POST   /emulator/v1/injections         add one injection, a list, or {"seed": …, "injections": […]} GET
/emulator/v1/injections         the active plan, with each injection's account DELETE
/emulator/v1/injections[/NAME]  remove all, or one
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmaster.local.http import cut, google_error, json_value
from trainmaster.local.injections.active import Injections
from trainmaster.local.injections.answers import answer_named
from trainmaster.local.injections.apply import apply_injections
from trainmaster.local.injections.injection import CODES, Call, Injection
from trainmaster.local.injections.plan import BadInjectionsError, plan_from

PATH = "/emulator/v1/injections"
_MAX_PLAN_BYTES = 1 << 20

Named = Callable[[Scope], str | None]
"""The method that a request calls, as the service's discovery document names it; None for an unknown one."""

Subjects = Callable[[Scope, bytes], tuple[str, ...]]
"""The subjects of a request, from its URL and body."""


@dataclass(frozen=True, kw_only=True)
class WithInjections:
    """`app`, with the injections around every call of the `service`."""

    app: ASGIApp
    injections: Injections
    service: str
    named: Named
    subjects: Subjects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_ours(scope["path"]):
            await (await _controlled(self.injections, scope, receive))(scope, receive, send)
            return
        if scope["type"] != "http" or not self.injections.active or (method := self.named(scope)) is None:
            await self.app(scope, receive, send)
            return
        at = f"{self.service}.{method}"
        if not self.injections.concerns(at):
            await self.app(scope, receive, send)
            return
        if (body := await _whole(receive)) is None:
            return

        async def do() -> list[Message]:
            return await _answer(self.app, scope, body, receive)

        async def refuse(injection: Injection) -> list[Message]:
            return await _answer(_refused(injection, scope), scope, b"", receive)

        async def lose(_injection: Injection) -> list[Message]:
            cut(scope)
            while (await receive())["type"] != "http.disconnect":
                pass
            return []

        call = Call(at=at, subjects=self.subjects(scope, body))
        for message in await apply_injections(self.injections, call, do, refuse=refuse, lose=lose):
            await send(message)


async def _answer(app: ASGIApp, scope: Scope, body: bytes, receive: Receive) -> list[Message]:
    """Run the application on a request whose body was read; return its response without sending it."""
    bodies = iter([body])

    async def once() -> Message:
        for content in bodies:
            return {"type": "http.request", "body": content, "more_body": False}
        return await receive()

    async def keep(message: Message) -> None:
        answer.append(message)

    answer: list[Message] = []
    await app({**scope}, once, keep)
    return answer


def _refused(injection: Injection, scope: Scope) -> Response:
    if injection.answer is not None:
        return answer_named(injection.answer, scope["path"])
    return google_error(
        injection.code,
        f"The injection {injection.name!r} struck here ({injection.kind.value}).",
        reason=_REASONS.get(injection.code, "backendError"),
        status=CODES[injection.code],
    )


# https://cloud.google.com/storage/docs/json_api/v1/status-codes
_REASONS = {
    400: "invalid",
    401: "required",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
}


async def _whole(receive: Receive) -> bytes | None:
    """The body; None if the client disconnected before its end."""
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)
    return None


def _is_ours(path: str) -> bool:
    return path == PATH or path.startswith(f"{PATH}/")


async def _controlled(injections: Injections, scope: Scope, receive: Receive) -> Response:
    name = unquote(scope["path"][len(PATH) + 1 :])
    match scope["method"]:
        case "GET" if not name:
            return JSONResponse(injections.to_json())
        case "POST" if not name:
            return _put(injections, await _whole(receive) or b"")
        case "DELETE":
            if not injections.remove(name or None) and name:
                names = ", ".join(injections.names) or "none"
                message = f"There is no injection named {name!r}; active: {names:.2000}."
                return google_error(404, message, reason="notFound", status="NOT_FOUND")
            return JSONResponse(injections.to_json())
        case method:
            return google_error(
                405,
                f"{method} {scope['path']} is not supported: POST plans to {PATH}; "
                f"GET lists all injections there and DELETE removes them; DELETE {PATH}/NAME removes one.",
            )


def _put(injections: Injections, body: bytes) -> Response:
    message = f"The plan has {len(body)} bytes; at most {_MAX_PLAN_BYTES} are allowed."
    if len(body) <= _MAX_PLAN_BYTES:
        try:
            injections.put(plan_from(json_value(body)))
            return JSONResponse(injections.to_json())
        except BadInjectionsError as wrong:
            message = str(wrong)
        except ValueError as wrong:
            message = f"The body is not valid JSON: {wrong}."
    return google_error(400, message, reason="invalid", status="INVALID_ARGUMENT")
