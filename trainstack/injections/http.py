"""Injections around an ASGI application, and the local-only path that controls them.

- POST /emulator/v1/injections adds one injection, a list, or {"seed": …, "injections": […]}.
- GET /emulator/v1/injections is the active plan, with each injection's account.
- DELETE /emulator/v1/injections[/NAME] removes all, or one.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainstack.http import cut
from trainstack.injections.active import InjectionKind, Injections, Struck, apply_injections
from trainstack.injections.answers import answer_named
from trainstack.injections.plan import CODES, PLACES, BadInjectionsError, plan_from
from trainstack.json_bodies import google_error, json_value, read_body

PATH = "/emulator/v1/injections"
_MAX_PLAN_BYTES = 1 << 20
_RESOURCE = re.compile(
    r"/v[123](beta1)?/(?P<name>(projects/[^/]+/)?(locations/[^/]+/)?(\w+/[^/:]+/)*(?P<collection>\w+)(/(?P<id>[^/:]+))?)"
    r"(:(?P<verb>[a-zA-Z]+))?"
)
_METHODS = {
    ("POST", False): "create",
    ("GET", False): "list",
    ("GET", True): "get",
    ("PUT", True): "update",
    ("PATCH", True): "update",
    ("DELETE", True): "delete",
}


def resource_method(scope: Scope) -> str | None:
    """The method of a request for a resource, such as `customJobs.create`; None for a path that names none."""
    path = _RESOURCE.fullmatch(scope["path"])
    if path is None:
        return None
    return f"{path['collection']}.{path['verb'] or _METHODS.get((scope['method'], path['id'] is not None))}"


def resource_subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """The resource's display name, its full name, the logs of entries, and its labels as `KEY=VALUE`, as far as given."""
    path, fields = _RESOURCE.fullmatch(scope["path"]), _json_fields(body)
    entries, labels = fields.get("entries"), fields.get("labels")
    written = [fields, *(entries if isinstance(entries, list) else [])]
    names = (
        fields.get("displayName"),
        path["name"] if path and path["name"] != path["collection"] else None,
        *(entry.get("logName") for entry in written if isinstance(entry, dict)),
        *(f"{key}={value}" for key, value in (labels.items() if isinstance(labels, dict) else ())),
    )
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def _json_fields(body: bytes) -> dict[str, object]:
    """The fields of a JSON object; none of another body."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, kw_only=True)
class WithInjections:
    """`app`, with the injections around every call of the `service`.

    `method_of` gives the method that a request calls, as the service's discovery document names it; `subjects` gives its
    subjects, from its URL and body.
    """

    app: ASGIApp
    injections: Injections
    service: str
    method_of: Callable[[Scope], str | None] = resource_method
    subjects: Callable[[Scope, bytes], tuple[str, ...]] = resource_subjects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == PATH or path.startswith(f"{PATH}/"):
            await (await _answer_control(self.injections, scope, receive))(scope, receive, send)
            return
        at = f"{self.service}.{self.method_of(scope)}" if path and self.injections.names else ""
        if at not in PLACES or not self.injections.concerns(at):
            await self.app(scope, receive, send)
            return
        body = await Request(
            scope, receive
        ).body()  # of a client that leaves meanwhile, LoopbackOnly takes care

        async def do() -> list[Message]:
            return await answer_of(self.app, scope, body, receive)

        try:
            answer = await apply_injections(self.injections, at, self.subjects(scope, body), do)
        except Struck as struck:
            if struck.injection.kind is not InjectionKind.DROP:
                await _refusal_of(struck, scope)(scope, receive, send)
                return
            answer = []
            cut(scope)
            while (await receive())["type"] != "http.disconnect":
                pass
        for message in answer:
            await send(message)


async def answer_of(app: ASGIApp, scope: Scope, body: bytes, receive: Receive | None = None) -> list[Message]:
    """Run the application on a request whose body was read; return its response without sending it.

    `receive` tells whether the client is still there.
    """
    bodies = iter([body])

    async def once() -> Message:
        for content in bodies:
            return {"type": "http.request", "body": content, "more_body": False}
        return await receive() if receive else {"type": "http.disconnect"}

    async def keep(message: Message) -> None:
        answer.append(message)

    answer: list[Message] = []
    await app({**scope}, once, keep)
    return answer


def _refusal_of(struck: Struck, scope: Scope) -> Response:
    injection = struck.injection
    if injection.answer is not None:
        return answer_named(injection.answer, scope["path"])
    return google_error(injection.code, str(struck), reason="backendError", status=CODES[injection.code])


async def _answer_control(injections: Injections, scope: Scope, receive: Receive) -> Response:
    name = unquote(scope["path"][len(PATH) + 1 :])
    match scope["method"]:
        case "GET" if not name:
            return JSONResponse(injections.to_json())
        case "POST" if not name:
            return await _put(injections, scope, receive)
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


async def _put(injections: Injections, scope: Scope, receive: Receive) -> Response:
    try:
        injections.put(
            plan_from(json_value(await read_body(Request(scope, receive), most_bytes=_MAX_PLAN_BYTES)))
        )
    except BadInjectionsError as wrong:
        message = str(wrong)
    except ValueError as wrong:
        message = f"The body is not a plan in JSON: {wrong}."
    else:
        return JSONResponse(injections.to_json())
    return google_error(400, message, reason="invalid", status="INVALID_ARGUMENT")
