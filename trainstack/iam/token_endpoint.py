"""OAuth 2.0's token endpoint, for clients that take nothing but a refresh token, such as gsutil."""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.iam.principals import Tokens
from trainstack.json_bodies import read_body

PATH = "/token"
_MAX_BODY_BYTES = 64 << 10
_EXPIRES_IN_S = 3600
_REFUSED = (
    "The local stack knows no keys and no accounts of Google's. Unset GOOGLE_APPLICATION_CREDENTIALS and use the variables "
    "that `trainmaster stack env` prints."
)


class TokenEndpoint:
    """An ASGI application that answers for oauth2.googleapis.com, and passes all other requests on to `app`.

    A valid token of the stack is its own refresh token.
    Source of the form: https://www.rfc-editor.org/rfc/rfc6749#section-6
    """

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", PATH):
            answer = await self._answer(Request(scope, receive))
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, request: Request) -> JSONResponse:
        try:
            fields = parse_qs((await read_body(request, most_bytes=_MAX_BODY_BYTES)).decode())
        except ValueError:
            fields = {}
        (token,) = fields.get("refresh_token", [""])[:1]
        if self._tokens.principal_of(token) is None:
            return JSONResponse({"error": "invalid_grant", "error_description": _REFUSED}, status_code=400)
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": _EXPIRES_IN_S})
