"""Authentication in front of every service: from a request's `Authorization` header to its principal.

Source of the refusals: https://cloud.google.com/docs/authentication and the services' responses to requests
without credentials or with expired ones.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.http import LoopbackOnly, cut
from trainstack.iam.authorization import DeniedError, denial, permission_info
from trainstack.iam.principals import ANONYMOUS, LOCAL_USER, Principal, Tokens, acting_as
from trainstack.json_bodies import google_error
from trainstack.loopback import GATEWAY_ADDRESS

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'}
_INVALID = (
    "Request had invalid authentication credentials. Expected an access token of this local stack: a replica's is good "
    "while its job runs. Outside of jobs send none, or use the variables that `trainmaster stack env` prints."
)
_MISSING = (
    "Request is missing required authentication credential. Expected an OAuth 2 access token, as the clients take it "
    "from the metadata server."
)

OWN_PATHS = "/emulator/"
"""The local stack's own calls, such as injections: only the project's owner may make them."""
DRAINED_MAX_BYTES = 64 << 20


class UnauthenticatedError(Exception):
    """The request's credentials are invalid, or are missing where they are required; 401 UNAUTHENTICATED."""


def authenticate(tokens: Tokens | None, *, authorization: str, peer: str) -> Principal:
    """The principal of a request.

    Args: tokens: the valid ones; None for a service that runs alone, where every request is the local user's.
    authorization: the header, or an empty string without one. peer: the address of the client.

    Raises:
        UnauthenticatedError: the header is not a valid bearer token, or a request through the gateway has none.
    """
    if tokens is None:
        return LOCAL_USER
    if authorization:
        scheme, _, token = authorization.partition(" ")
        principal = tokens.principal_of(token.strip()) if scheme.lower() == "bearer" else None
        if principal is None:
            raise UnauthenticatedError(_INVALID)
        return principal
    if peer == GATEWAY_ADDRESS:
        raise UnauthenticatedError(_MISSING)
    return LOCAL_USER


class Authenticated:
    """An ASGI application that answers 401 to requests with invalid credentials; in all others, `caller` returns the principal.

    It answers 403 to an account that calls `OWN_PATHS`. With `anonymous`, a missing credential is no fault.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens | None, *, anonymous: bool = False) -> None:
        self._app = app
        self._tokens = tokens
        self._anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        peer, _ = scope.get("client") or ("", 0)
        try:
            principal = authenticate(self._tokens, authorization=header, peer=peer)
        except UnauthenticatedError as refusal:
            if header or not self._anonymous:
                await answer_refusal(_refusal(str(refusal)), scope, receive, send)
                return
            principal = ANONYMOUS
        if principal.member and scope["path"].startswith(OWN_PATHS):
            forbidden = google_error(403, denial(""), reason="forbidden", status="PERMISSION_DENIED")
            await answer_refusal(forbidden, scope, receive, send)
            return
        with acting_as(principal):
            await self._app(scope, receive, send)


def guarded_app(app: ASGIApp, tokens: Tokens | None) -> ASGIApp:
    """The application, restricted to requests from this machine, each with its principal.

    Every service is served through it.
    """
    return LoopbackOnly(Authenticated(app, tokens))


async def answer_denial(_request: Request, denied: Exception, *, sentence: str = "") -> Response:
    """Starlette's handler of `DeniedError`; the service's own sentence may name the `{permission}`.

    As clients report it, for example in https://github.com/genkit-ai/genkit/pull/3577.
    """
    if not isinstance(denied, DeniedError):
        raise denied
    info = permission_info(denied.permission, domain="iam.googleapis.com")
    message = sentence.format(permission=denied.permission) or str(denied)
    return google_error(403, message, status="PERMISSION_DENIED", details=[info])


def _refusal(message: str) -> ASGIApp:
    return google_error(401, message, reason="authError", status="UNAUTHENTICATED", headers=CHALLENGE)


async def answer_refusal(refusal: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    if await _drain_body(receive):
        await refusal(scope, receive, send)
    else:
        cut(scope)


async def _drain_body(receive: Receive) -> bool:
    """Read and discard the body: a client that is still sending would take an early response for a broken connection.

    False if it exceeds DRAINED_MAX_BYTES, beyond which no response is sent.
    """
    size = 0
    while size <= DRAINED_MAX_BYTES:
        part = await receive()
        size += len(part.get("body", b""))
        if not part.get("more_body", False):
            return True
    return False
