"""The console serves this machine's browser, from its own pages, and for changes with the session's token.

Binding to loopback keeps out other machines, but not a web page in a browser on this one, nor other users of this
machine. Source of the checks: https://www.w3.org/TR/fetch-metadata/, https://www.w3.org/TR/CSP3/
"""

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmaster.web.console import WebConsole
from trainmaster.web.iap import ASSERTION, IapDoor, NotSignedIn
from trainstack.find import own_hosts

TOKEN_FIELD = "token"  # noqa: S105 - a name
COOKIE = "trainmaster_console_"
"""The cookie's name, before the port: browsers send cookies of one port to all others."""
READING = frozenset({"GET", "HEAD"})
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: with it, browsers send `Origin: null` with the forms of these pages.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
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

        answer = await self._answer(Request(scope))
        await (answer or self._app)(scope, receive, with_headers)

    async def _answer(self, request: Request) -> Response | None:
        """A refusal, or the redirection that takes the token out of the address; None if the request may continue."""
        console, headers = self._console, request.headers
        if (door := console.source.door) is not None:
            return await _signed_answer(door, request)
        if refusal := refusal_of(request.method, headers):
            return _refusal(403, refusal)
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
            return _refusal(
                403,
                "This console shows a deployed project. Open the whole address that `trainmaster web` printed.",
            )
        return None


async def _signed_answer(door: IapDoor, request: Request) -> Response | None:
    """The refusal of a request without a valid assertion, or of a change from a foreign page; None if it may continue.

    The assertion is for this service alone, so the name in `Host` proves nothing more; but a stand-in signs every request.
    """
    if door.in_front is not None and (foreign := _foreign_host(request.headers)):
        return _refusal(403, foreign)
    try:
        request.state.person = await run_in_threadpool(door.person_of, request.headers.getlist(ASSERTION))
    except NotSignedIn as refused:
        return _refusal(refused.status, str(refused))
    own = f"{request.headers.get('x-forwarded-proto', 'http')}://{request.headers.get('host', '')}"
    refusal = _foreign_page(request.method, request.headers, own)
    return _refusal(403, refusal) if refusal else None


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"status": status, "message": message}}, status_code=status)


def refusal_of(method: str, headers: Mapping[str, str]) -> str:
    """Why a page from elsewhere may have sent the request; empty if it did not. `headers` are by lower-case name.

    A foreign `Host` is DNS rebinding. A change needs an `Origin`, or a `Sec-Fetch-Site`, of these pages or none at all,
    as programs other than browsers send it.
    """
    return _foreign_host(headers) or _foreign_page(method, headers, f"http://{headers.get('host', '')}")


def _foreign_host(headers: Mapping[str, str]) -> str:
    """Why `Host` is not a name of this machine; empty if it is one."""
    host = headers.get("host", "")
    if _hostname(host) in own_hosts():
        return ""
    return f"The console answers only to {', '.join(sorted(own_hosts()))}, found Host {host!r}."


def _foreign_page(method: str, headers: Mapping[str, str], own: str) -> str:
    """Why a page of another origin than `own` may have sent the change; empty if it did not."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if method in READING:
        return ""
    if origin not in (None, own) or site not in (None, "same-origin", "none"):
        return f"Only the console's own pages, {own}, may change anything; found Origin {origin!r}."
    return ""


def _hostname(host: str) -> str | None:
    """The name in a `Host` header, without its port; None for a malformed one."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def has_token(token: str, headers: Mapping[str, str], form: Mapping[str, str]) -> bool:
    """Whether the `Authorization: Bearer` header or the form has the session's token."""
    return same(token, form.get(TOKEN_FIELD) or _bearer(headers))


def may_read(token: str, headers: Mapping[str, str]) -> bool:
    """Whether the cookie or the `Authorization` header has the session's token."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
    except CookieError:
        cookie = None
    return same(token, cookie.value if cookie else None) or same(token, _bearer(headers))


def cookie_name(headers: Mapping[str, str]) -> str:
    """The name of the cookie that holds the session's token."""
    return f"{COOKIE}{headers.get('host', '').rpartition(':')[2]}"


def same(token: str, given: str | None) -> bool:
    """Whether `given` is the token, compared in constant time."""
    return given is not None and hmac.compare_digest(token.encode(), given.encode(errors="replace"))


def _bearer(headers: Mapping[str, str]) -> str | None:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else None


def _without_key(request: Request) -> str:
    """The request's own address without the token. It has one leading slash: with two it would name another host."""
    rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "key"])
    path = "/" + quote(request.scope["path"].lstrip("/"))
    return f"{path}?{rest}" if rest else path
