"""Vertex AI's refusals for lack of a permission, in the service's form."""

from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.iam.authorization import DeniedError, authorize, permission_info, project_of
from trainstack.iam.service import Grants
from trainstack.json_bodies import google_error
from trainstack.vertex.injections import named

_SERVICE = "aiplatform.googleapis.com"


class Authorized:
    """An ASGI application that answers 403 to callers without the permission that a method requires.

    Source of its form: https://github.com/GoogleCloudPlatform/t5x-on-vertex-ai/issues/5
    """

    def __init__(self, app: ASGIApp, grants: Grants | None) -> None:
        self._app, self._grants = app, grants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = scope["path"].split("/")  # /v1/projects/PROJECT/locations/LOCATION/COLLECTION[/JOB[:VERB]]
        project = parts[3] if parts[2:3] == ["projects"] and len(parts) > 3 else ""  # noqa: PLR2004  # see above
        resources = {"project": project_of(self._grants, project)}
        try:
            authorize(self._grants, f"vertex.{named(scope)}", resources)
        except DeniedError as denied:
            await _forbidden(denied, parts)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _forbidden(denied: DeniedError, parts: list[str]) -> ASGIApp:
    if not denied.permission:
        return google_error(403, str(denied), status="PERMISSION_DENIED")
    is_job = denied.permission.rpartition(".")[2] not in ("create", "list")
    resource = "/".join(parts[2 : 8 if is_job else 6]).partition(":")[0]
    return google_error(
        403,
        f"Permission '{denied.permission}' denied on resource '//{_SERVICE}/{resource}' (or it may not exist).",
        status="PERMISSION_DENIED",
        details=[permission_info(denied.permission, domain=_SERVICE, resource=resource)],
    )
