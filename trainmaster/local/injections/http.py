"""Injections around an ASGI application, and the local-only path on which they are asked for.

POST   /emulator/v1/injections         one injection, a list, or {"seed": …, "injections": […]}: put in force
GET    /emulator/v1/injections[/NAME]  what is in force, with each injection's account, or one of them
DELETE /emulator/v1/injections[/NAME]  all, or one
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmaster.local.http import cut, google_error, json_value
from trainmaster.local.injections.active import KILLS, Injections, Kill
from trainmaster.local.injections.apply import wait_out
from trainmaster.local.injections.calls import Call
from trainmaster.local.injections.injection import CODES, EVERY_KIND, Injection, Kind
from trainmaster.local.injections.plan import BadInjectionsError, plan_from

PATH = "/emulator/v1/injections"
_MAX_PLAN_BYTES = 1 << 20

Named = Callable[[Scope], str | None]
"""The method that a request calls, as the service's discovery document names it; None for one that is none."""

Subjects = Callable[[Scope, bytes], tuple[str, ...]]
"""What a request is about, from its address and its body."""


@dataclass(frozen=True, kw_only=True)
class WithInjections:
    """An ASGI application: `app`, with the injections around every call of the `service`."""

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
        kill = self.injections.killer_at(at, (scope.get("client") or ("", 0))[1])
        kinds = EVERY_KIND if kill else EVERY_KIND - KILLS
        call = Call(at=at, subjects=self.subjects(scope, body), kinds=kinds)
        exchange = _Exchange(app=self.app, scope=scope, body=body, receive=receive, send=send)
        try:
            injection = self.injections.strike(call)
            if injection is None:
                await exchange.done()
            else:
                await self._struck(injection, exchange, kill)
        finally:
            self.injections.passed(call)

    async def _struck(self, injection: Injection, exchange: "_Exchange", kill: Kill | None) -> None:
        match injection.kind:
            case Kind.ERROR_BEFORE:
                await exchange.refused(injection)
                return
            case Kind.ERROR_AFTER:
                await exchange.done_untold()
                await exchange.refused(injection)
                return
            case Kind.KILL | Kind.KILL_AFTER | Kind.DROP:
                if injection.kind is Kind.KILL_AFTER:
                    await exchange.done_untold()
                if kill and injection.kind is not Kind.DROP:
                    kill()
                await exchange.cut()
                return
            case Kind.DELAY | Kind.REORDER:
                await wait_out(self.injections, injection)
            case Kind.DUPLICATE:
                await exchange.done_untold()
        await exchange.done()


@dataclass(frozen=True, kw_only=True)
class _Exchange:
    """One request whose body is here, and the ways it can go."""

    app: ASGIApp
    scope: Scope
    body: bytes
    receive: Receive
    send: Send

    async def done(self) -> None:
        await self.app({**self.scope}, self._again(), self.send)

    async def done_untold(self) -> None:
        """Carry the request out and keep the answer back."""

        async def nowhere(_message: Message) -> None:
            pass

        await self.app({**self.scope}, self._again(), nowhere)

    async def refused(self, injection: Injection) -> None:
        answer = google_error(
            injection.code,
            f"The injection {injection.name!r} struck here ({injection.kind.value}).",
            reason=_REASONS.get(injection.code, "backendError"),
            status=CODES[injection.code],
        )
        await answer(self.scope, self.receive, self.send)

    async def cut(self) -> None:
        """Close the connection without an answer."""
        cut(self.scope)
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def _again(self) -> Receive:
        told = False

        async def receive() -> Message:
            nonlocal told
            if told:
                return await self.receive()
            told = True
            return {"type": "http.request", "body": self.body, "more_body": False}

        return receive


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
    """The body; None when the client went away before its end, and nobody waits for an answer."""
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
        case "GET":
            if not name:
                return JSONResponse(injections.to_json())
            one = injections.one_to_json(name)
            return JSONResponse(one) if one else _unknown(injections, name)
        case "POST" if not name:
            return _put(injections, await _whole(receive) or b"")
        case "DELETE":
            if not injections.remove(name or None) and name:
                return _unknown(injections, name)
            return JSONResponse(injections.to_json())
        case method:
            return google_error(
                405,
                f"{method} {scope['path']} is no call; plans are posted to {PATH}, "
                f"and all injections are got and deleted there, one at {PATH}/NAME.",
            )


def _unknown(injections: Injections, name: str) -> Response:
    names = ", ".join(injections.names) or "none"
    return google_error(
        404,
        f"There is no injection named {name!r}; in force: {names:.2000}.",
        reason="notFound",
        status="NOT_FOUND",
    )


def _put(injections: Injections, body: bytes) -> Response:
    if len(body) > _MAX_PLAN_BYTES:
        return _refusal(f"The plan has {len(body)} bytes, at most {_MAX_PLAN_BYTES} are allowed.")
    try:
        value = json_value(body)
    except ValueError as wrong:
        return _refusal(f"The body is no JSON: {wrong}.")
    try:
        injections.put(plan_from(value))
    except BadInjectionsError as wrong:
        return _refusal(str(wrong))
    return JSONResponse(injections.to_json())


def _refusal(message: str) -> Response:
    return google_error(400, message, reason="invalid", status="INVALID_ARGUMENT")
