"""The checks that precede every route, and the headers that every response has."""

from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmaster.web.console import WebConsole
from trainmaster.web.security import HEADERS, READING, cookie_name, may_read, refusal_of, same

_CACHED = "public, max-age=3600"


class Guard:
    """The application behind the checks."""

    def __init__(self, app: ASGIApp, console: WebConsole) -> None:
        self._app, self._console = app, console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in present]
                if b"cache-control" not in present:
                    cached = _CACHED if scope["path"].startswith("/static/") else "no-store"
                    more.append((b"cache-control", cached.encode()))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        answer = self._answer(Request(scope))
        await (answer or self._app)(scope, receive, with_headers)

    def _answer(self, request: Request) -> Response | None:
        """A refusal, or the redirection that takes the token out of the address; None if the request may continue."""
        console, headers = self._console, request.headers
        if refusal := refusal_of(request.method, headers):
            return JSONResponse({"error": {"status": 403, "message": refusal}}, status_code=403)
        given = request.query_params.get("key")
        if request.method in READING and same(console.token, given):
            answer = RedirectResponse(_without_key(request), status_code=303)
            answer.set_cookie(cookie_name(headers), console.token, httponly=True, samesite="strict")
            return answer
        if (
            console.is_secret
            and not request.url.path.startswith("/static/")
            and not may_read(console.token, headers)
        ):
            message = "This console shows a deployed project. Open the whole address that `trainmaster web` printed."
            return JSONResponse({"error": {"status": 403, "message": message}}, status_code=403)
        return None


def _without_key(request: Request) -> str:
    """The request's own address without the token. It has one leading slash: with two it would name another host."""
    rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "key"])
    path = "/" + quote(request.scope["path"].lstrip("/"))
    return f"{path}?{rest}" if rest else path
