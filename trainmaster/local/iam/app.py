"""The REST methods by which permissions are asked for, of five services on one port.

The services' paths differ, so one port can answer for all of them:
Resource Manager https://cloud.google.com/resource-manager/reference/rest/v1/projects,
Pub/Sub https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.topics,
IAM https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts,
Service Account Credentials https://cloud.google.com/iam/docs/reference/credentials/rest,
Cloud Run https://cloud.google.com/run/docs/reference/rest/v2/projects.locations.services.
Buckets are asked about at Cloud Storage's own port.

GET, POST, DELETE /emulator/v1/taken-grants is the local stack's own: what a test takes away.
"""

import re
from datetime import UTC, datetime, timedelta

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trainmaster.local.http import LoopbackOnly, google_error, json_value
from trainmaster.local.iam.grants import BadTakingError, Grants, member_of, token_of

TAKEN = "/emulator/v1/taken-grants"
MAX_BODY_BYTES = 1 << 20
LIFETIME_MOST_S = 3600
_LIFETIME = re.compile(r"([0-9]{1,5})s")
_GET_POLICY = re.compile(
    r"v1/(projects/[^/:]+/(?:topics|subscriptions)/[^/:]+)|v2/(projects/[^/:]+/locations/[^/:]+/services/[^/:]+)"
)
_POST_POLICY = re.compile(r"v1/(projects/[^/:]+(?:/serviceAccounts/[^/:]+)?)")
_ACCOUNT = re.compile(r"v1/projects/-/serviceAccounts/([^/:]+)")
_PROJECT = re.compile(r"v1/projects/([^/:]+)")


class _RefusedError(Exception):
    def __init__(self, code: int, status: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def application(grants: Grants) -> ASGIApp:
    """The ASGI application."""
    surface = _Surface(grants)
    routes = [
        Route(TAKEN, surface.taken, methods=["GET", "POST", "DELETE"]),
        Route("/{path:path}", surface.called, methods=["GET", "POST"]),
    ]
    return LoopbackOnly(Starlette(routes=routes))


class _Surface:
    def __init__(self, grants: Grants) -> None:
        self._grants = grants

    async def taken(self, request: Request) -> Response:
        try:
            if request.method == "POST":
                self._grants.take(await _body(request))
            elif request.method == "DELETE":
                self._grants.restore()
        except _RefusedError as refused:
            return google_error(refused.code, str(refused), status=refused.status)
        except BadTakingError as fault:
            return google_error(400, str(fault), status="INVALID_ARGUMENT")
        return JSONResponse(self._grants.taken())

    async def called(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except _RefusedError as refused:
            return google_error(refused.code, str(refused), status=refused.status)

    async def _answer(self, request: Request) -> Response:
        name, _, verb = request.path_params["path"].partition(":")
        member = member_of(request.headers.get("authorization", ""))
        match request.method, verb:
            case "GET", "" if found := _PROJECT.fullmatch(name):
                return self._project(found[1])
            case ("GET", "getIamPolicy") if found := _GET_POLICY.fullmatch(name):
                return self._policy(member, found[1] or found[2])
            case ("POST", "getIamPolicy") if found := _POST_POLICY.fullmatch(name):
                return self._policy(member, found[1])
            case ("POST", "testIamPermissions") if found := (
                _GET_POLICY.fullmatch(name) or _POST_POLICY.fullmatch(name)
            ):
                asked = _permissions(await _body(request))
                held = self._grants.permitted(member, asked, next(filter(None, found.groups())))
                return JSONResponse({"permissions": held} if held else {})
            case "POST", "generateAccessToken" if found := _ACCOUNT.fullmatch(name):
                return self._token(member, found[1], await _body(request))
            case _:
                raise _RefusedError(404, "NOT_FOUND", f"{request.method} {request.url.path} is no call here.")

    def _project(self, project: str) -> Response:
        if project != self._grants.project:
            # The service does not tell a project that is not there from one that may not be seen.
            raise _RefusedError(403, "PERMISSION_DENIED", "The caller does not have permission")
        return JSONResponse(
            {"projectId": project, "projectNumber": self._grants.project_number, "lifecycleState": "ACTIVE"}
        )

    def _policy(self, member: str, resource: str) -> Response:
        permission = f"{_KIND[_kind(resource)]}.getIamPolicy"
        if not self._grants.permitted(member, [permission], resource):
            raise _RefusedError(
                403, "PERMISSION_DENIED", f"Permission '{permission}' denied on {resource!r}."
            )
        return JSONResponse(self._grants.policy(resource))

    def _token(self, member: str, email: str, body: dict[str, object]) -> Response:
        resource = f"projects/{self._grants.project}/serviceAccounts/{email}"
        permission = "iam.serviceAccounts.getAccessToken"
        scope = body.get("scope")
        lifetime = _LIFETIME.fullmatch(str(body.get("lifetime") or f"{LIFETIME_MOST_S}s"))
        if not isinstance(scope, list) or not scope:
            raise _RefusedError(400, "INVALID_ARGUMENT", "scope is required: a list of OAuth 2.0 scopes.")
        if lifetime is None or not 0 < int(lifetime[1]) <= LIFETIME_MOST_S:
            raise _RefusedError(
                400,
                "INVALID_ARGUMENT",
                f"lifetime {body['lifetime']!r}: 1s to {LIFETIME_MOST_S}s are allowed.",
            )
        known = self._grants.knows(f"serviceAccount:{email}")
        if not known or not self._grants.permitted(member, [permission], resource):
            raise _RefusedError(
                403,
                "PERMISSION_DENIED",
                f"Permission '{permission}' denied on resource (or it may not exist).",
            )
        expires = datetime.now(UTC) + timedelta(seconds=int(lifetime[1]))
        return JSONResponse({"accessToken": token_of(email), "expireTime": f"{expires:%Y-%m-%dT%H:%M:%SZ}"})


_KIND = {
    "projects": "resourcemanager.projects",
    "topics": "pubsub.topics",
    "subscriptions": "pubsub.subscriptions",
    "serviceAccounts": "iam.serviceAccounts",
    "services": "run.services",
}


def _kind(resource: str) -> str:
    return resource.split("/")[-2]


def _permissions(body: dict[str, object]) -> list[str]:
    asked = body.get("permissions", [])
    if not isinstance(asked, list) or not all(isinstance(each, str) for each in asked):
        raise _RefusedError(400, "INVALID_ARGUMENT", f"permissions must be a list of texts, found {asked!r}")
    if wild := [each for each in asked if "*" in each]:
        raise _RefusedError(400, "INVALID_ARGUMENT", f"Permissions with wildcards are not allowed: {wild!r}")
    return asked


async def _body(request: Request) -> dict[str, object]:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MAX_BODY_BYTES:
            raise _RefusedError(400, "INVALID_ARGUMENT", f"the body has more than {MAX_BODY_BYTES} bytes")
    try:
        body = json_value(bytes(raw) or b"{}")
    except ValueError as fault:
        raise _RefusedError(400, "INVALID_ARGUMENT", f"the body is no JSON: {fault}") from fault
    if not isinstance(body, dict):
        raise _RefusedError(
            400, "INVALID_ARGUMENT", f"the body must be an object, found {type(body).__name__}"
        )
    return body
