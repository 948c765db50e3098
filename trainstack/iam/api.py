"""The REST methods that report permissions, of five services on one port.

The services' paths differ, so one port can answer for all of them: Resource Manager
https://cloud.google.com/resource-manager/reference/rest/v1/projects, Pub/Sub
https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.topics, IAM
https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts, Service Account Credentials
https://cloud.google.com/iam/docs/reference/credentials/rest, Cloud Run
https://cloud.google.com/run/docs/reference/rest/v2/projects.locations.services. Those of buckets are on Cloud
Storage's port.

GET, POST, DELETE /emulator/v1/taken-grants is the local stack's own: grants that a test has taken away.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.http import LoopbackOnly
from trainstack.iam.authentication import Authenticated
from trainstack.iam.authorization import (
    DeniedError,
    account_of,
    authorize,
    denial,
    project_of,
    unknown_permissions,
)
from trainstack.iam.principals import Principal, Tokens, TooManyTokensError, caller
from trainstack.iam.service import Grants, RevokeError
from trainstack.json_bodies import answer_not_served, answer_refusal, google_error, read_body, read_object
from trainstack.project import project_number

TAKEN = "/emulator/v1/taken-grants"
MAX_BODY_BYTES = 1 << 20
LIFETIME_MOST_S = 3600
_LIFETIME = re.compile(r"([0-9]{1,5})s")
_POLICIES = {
    "GET": re.compile(
        r"v1/(projects/[^/:]+/(?:topics|subscriptions)/[^/:]+)|v2/(projects/[^/:]+/locations/[^/:]+/services/[^/:]+)"
    ),
    "POST": re.compile(r"v1/(projects/[^/:]+(?:/serviceAccounts/[^/:]+)?)|v3/(projects/[^/:]+)"),
}
"""Resources whose policies are read by GET, and those by POST."""
_ACCOUNTS = re.compile(r"v1/projects/([^/:]+)/serviceAccounts(?:/([^/:]+))?")
_ACCOUNT = re.compile(r"v1/projects/-/serviceAccounts/([^/:]+)")
_PROJECT = re.compile(r"v([13])/projects/([^/:]+)")
_HOSTS = re.compile(
    r"(iam|iamcredentials|cloudresourcemanager|run)\.googleapis\.com|(?!.*\.googleapis\.com).*"
)
"""Google's that this application answers for, and every other; the gateway sends it the calls of all hosts that no service has."""
_GET_POLICY_PERMISSION = {
    "projects": "resourcemanager.projects.getIamPolicy",
    "topics": "pubsub.topics.getIamPolicy",
    "subscriptions": "pubsub.subscriptions.getIamPolicy",
    "serviceAccounts": "iam.serviceAccounts.getIamPolicy",
    "services": "run.services.getIamPolicy",
}
_SIGN_PERMISSION = "iam.serviceAccounts.signBlob"
_TOKEN_PERMISSION = "iam.serviceAccounts.getAccessToken"  # noqa: S105  # no secret

_OAUTH_PATH = "/token"
_MAX_TOKEN_BODY_BYTES = 64 << 10
_EXPIRES_IN_S = 3600
_NO_KEYS = (
    "The local stack knows no keys and no accounts of Google's. Unset GOOGLE_APPLICATION_CREDENTIALS and use the variables "
    "that `trainmaster stack env` prints."
)


def application(grants: Grants, tokens: Tokens | None = None) -> ASGIApp:
    """The ASGI application. `generateAccessToken` issues tokens from the stack's `tokens`."""
    known = tokens or Tokens()

    async def answer(request: Request) -> Response:
        return JSONResponse(await _answer_call(grants, known, request))

    async def answer_taken(request: Request) -> Response:
        return JSONResponse(await _answer_taken_grants(grants, request))

    calls = Starlette(
        routes=[
            Route(TAKEN, answer_taken, methods=["GET", "POST", "DELETE"]),
            Route("/{path:path}", answer, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ],
        exception_handlers={
            ApiError: answer_refusal,
            HTTPException: answer_not_served,
            DeniedError: _answer_denial,
        },
    )
    authenticated = Authenticated(calls, known)
    refresh = Route(_OAUTH_PATH, _refreshing(known), methods=["POST"])
    return LoopbackOnly(Starlette(routes=[refresh, Mount("/", authenticated)]))


async def _answer_denial(_request: Request, denied: Exception) -> Response:
    return google_error(403, str(denied), status="PERMISSION_DENIED")


async def _answer_taken_grants(grants: Grants, request: Request) -> dict[str, object]:
    if request.method == "POST":
        try:
            grants.take(await _body(request))
        except RevokeError as fault:
            raise InvalidArgumentError(str(fault)) from fault
    elif request.method == "DELETE":
        grants.restore()
    return grants.taken_grants()


async def _answer_call(grants: Grants, tokens: Tokens, request: Request) -> dict[str, object]:
    member = caller().member
    if not _HOSTS.fullmatch(request.headers.get("host", "")):
        raise HTTPException(404)
    name, _, verb = request.path_params["path"].partition(":")
    match request.method, verb:
        case "GET", "" if match := _PROJECT.fullmatch(name):
            return _project(grants, match[2], version=match[1])
        case "GET", "" if match := _ACCOUNTS.fullmatch(name):
            return _accounts(grants, *match.groups())
        case ("GET" | "POST") as asked_by, "getIamPolicy" if match := _POLICIES[asked_by].fullmatch(name):
            return _policy(grants, member, match[1] or match[2])
        case ("POST", "testIamPermissions") if match := (
            _POLICIES["GET"].fullmatch(name) or _POLICIES["POST"].fullmatch(name)
        ):
            asked = _permissions(await _body(request), grants)
            resource = next(filter(None, match.groups()))
            _check_resource(grants, resource)
            permitted = grants.permitted(member, asked, resource)
            return {"permissions": permitted} if permitted else {}
        case "POST", "generateAccessToken" if match := _ACCOUNT.fullmatch(name):
            return _token(grants, tokens, match[1], await _body(request))
        case "POST", "signBlob" if match := _ACCOUNT.fullmatch(name):
            return await _signed_blob(grants, tokens, match[1], await _body(request))
        case _:
            raise HTTPException(404)


def _project(grants: Grants, project: str, *, version: str) -> dict[str, object]:
    """The project by its id or number, in the form of Resource Manager v1 or v3.

    Source: https://cloud.google.com/resource-manager/reference/rest/v3/projects
    """
    if project not in (grants.project, grants.project_number):
        # The service answers alike for a missing project and for a hidden one.
        raise ApiError(Status.PERMISSION_DENIED, "The caller does not have permission")
    authorize(grants, "cloudresourcemanager.projects.get", {"project": project_of(grants, project)})
    shown: dict[str, object] = {"projectId": grants.project}
    if version == "1":
        return shown | {"projectNumber": grants.project_number, "lifecycleState": "ACTIVE"}
    return shown | {"name": f"projects/{grants.project_number}", "state": "ACTIVE"}


def _accounts(grants: Grants, project: str, email: str | None) -> dict[str, object]:
    """The project's service accounts; with `email`, that one.

    Source: https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts
    """
    if project not in ("-", grants.project, grants.project_number):
        raise ApiError(Status.PERMISSION_DENIED, "The caller does not have permission")
    resources = {"project": project_of(grants, grants.project), "account": account_of(grants, email or "")}
    authorize(grants, f"iam.serviceAccounts.{'get' if email else 'list'}", resources)
    accounts = [
        {"name": account_of(grants, known).name, "projectId": grants.project, "email": known}
        | {"uniqueId": project_number(known), "displayName": known.partition("@")[0]}
        for known in grants.accounts()
        if email in (None, known)
    ]
    if not email:
        return {"accounts": accounts} if accounts else {}
    if not accounts:
        raise _unknown_account(email)
    return dict(accounts[0])


def _unknown_account(name: str) -> ApiError:
    return ApiError(Status.NOT_FOUND, f"Unknown service account: {name}")


def _check_resource(grants: Grants, resource: str) -> None:
    """Raises `ApiError`: NOT_FOUND for a service account that does not exist."""
    kind, name = resource.split("/")[-2:]
    if kind == "serviceAccounts" and name not in grants.accounts():
        raise _unknown_account(name)


def _policy(grants: Grants, member: str, resource: str) -> dict[str, object]:
    permission = _GET_POLICY_PERMISSION[resource.split("/")[-2]]
    if not grants.permitted(member, [permission], resource):
        raise ApiError(Status.PERMISSION_DENIED, f"Permission '{permission}' denied on {resource!r}.")
    _check_resource(grants, resource)
    return grants.policy(resource)


def _token(grants: Grants, tokens: Tokens, email: str, body: dict[str, object]) -> dict[str, object]:
    scope = body.get("scope")
    lifetime = _LIFETIME.fullmatch(str(body.get("lifetime") or f"{LIFETIME_MOST_S}s"))
    if not isinstance(scope, list) or not scope:
        raise InvalidArgumentError("scope is required: a list of OAuth 2.0 scopes.")
    if lifetime is None or not 0 < int(lifetime[1]) <= LIFETIME_MOST_S:
        raise InvalidArgumentError(f"lifetime {body['lifetime']!r}: expected 1s to {LIFETIME_MOST_S}s.")
    _require_on_account(grants, _TOKEN_PERMISSION, email)
    lifetime_s = int(lifetime[1])
    try:
        token = tokens.issue(Principal(kind="account", name=email, email=email), lifetime_s=lifetime_s)
    except TooManyTokensError as fault:
        raise ApiError(Status.RESOURCE_EXHAUSTED, str(fault)) from fault
    expires = datetime.now(UTC) + timedelta(seconds=lifetime_s)
    return {"accessToken": token, "expireTime": f"{expires:%Y-%m-%dT%H:%M:%SZ}"}


async def _signed_blob(
    grants: Grants, tokens: Tokens, email: str, body: dict[str, object]
) -> dict[str, object]:
    try:
        payload = base64.b64decode(str(body.get("payload") or ""), validate=True)
    except ValueError:
        payload = b""
    if not payload:
        raise InvalidArgumentError("payload is required: the bytes to sign, in base64.")
    _require_on_account(grants, _SIGN_PERMISSION, email)
    signature = await asyncio.to_thread(tokens.keys.sign, email, payload)
    return {"keyId": "local", "signedBlob": base64.b64encode(signature).decode()}


def _require_on_account(grants: Grants, permission: str, email: str) -> None:
    account = f"projects/{grants.project}/serviceAccounts/{email}"
    known = grants.knows(f"serviceAccount:{email}")
    if not known or (grants.enforced and not grants.permitted(caller().member, [permission], account)):
        raise ApiError(Status.PERMISSION_DENIED, denial(permission))


def _permissions(body: dict[str, object], grants: Grants) -> list[str]:
    asked = body.get("permissions", [])
    if not isinstance(asked, list) or not all(isinstance(permission, str) for permission in asked):
        raise InvalidArgumentError(f"permissions must be a list of strings, found {asked!r}")
    if wild := [permission for permission in asked if "*" in permission]:
        raise InvalidArgumentError(f"Permissions with wildcards are not allowed: {wild!r}")
    if unknown := unknown_permissions(grants, asked):
        raise InvalidArgumentError(
            f"Permissions that the local stack does not know: {unknown!r}; check their spelling."
        )
    return asked


async def _body(request: Request) -> dict[str, object]:
    try:
        return await read_object(request, most_bytes=MAX_BODY_BYTES, may_be_empty=True)
    except ValueError as fault:
        raise InvalidArgumentError(str(fault)) from fault


def _refreshing(tokens: Tokens) -> Callable[[Request], Awaitable[Response]]:
    """OAuth 2.0's token endpoint, oauth2.googleapis.com, for clients with only a refresh token, such as gsutil.

    A valid token of the stack is its own refresh token.
    Source of the form: https://www.rfc-editor.org/rfc/rfc6749#section-6
    """

    async def refresh(request: Request) -> Response:
        try:
            fields = parse_qs((await read_body(request, most_bytes=_MAX_TOKEN_BODY_BYTES)).decode())
        except ValueError:
            fields = {}
        (token,) = fields.get("refresh_token", [""])[:1]
        if tokens.principal_of(token) is None:
            return JSONResponse({"error": "invalid_grant", "error_description": _NO_KEYS}, status_code=400)
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": _EXPIRES_IN_S})

    return refresh
