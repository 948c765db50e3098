"""Vertex AI's application over REST: who may call, and in what form it refuses.

`/emulator` is the local stack's own: events that happen to jobs by themselves in the cloud, and here only on request.
"""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.errors import ApiError, InvalidArgumentError
from trainstack.iam.authentication import guarded_app
from trainstack.iam.authorization import DeniedError, authorize, permission_info, project_of
from trainstack.iam.principals import Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.injections.http import WithInjections, resource_method
from trainstack.jobs.capacity import Supply, quota_from
from trainstack.jobs.resource.job import CHIEF
from trainstack.jobs.resource.machines import require_region
from trainstack.jobs.service import JobService
from trainstack.json_bodies import answer_not_served, answer_refusal, google_error, is_disk_full, refuse_call
from trainstack.vertex.resources.rest import Resources, read_fields
from trainstack.vertex.resources.store import by_number

_SERVICE = "aiplatform.googleapis.com"
_OURS = "/emulator/v1"
_JOB = "projects/{project}/locations/{location}/customJobs/{job}"


def application(
    jobs: JobService,
    supply: Supply,
    resources: Resources,
    *,
    injections: Injections,
    tokens: Tokens | None = None,
    grants: Grants | None = None,
) -> ASGIApp:
    """The ASGI application of one stack's jobs and resources, with injections at every call, for principals with `tokens` and `grants`."""

    async def preempt(request: Request) -> Response:
        body = await read_fields(request, may_be_empty=True)
        replica = body.get("replica", CHIEF.name)
        if not isinstance(replica, str) or body.keys() - {"replica"}:
            raise InvalidArgumentError(
                f'Expected {{"replica": "{CHIEF.name}"}} or an empty body, found {body!r:.80}.',
            )
        location = request.path_params["location"]
        require_region(location)
        parent = by_number(f"projects/{request.path_params['project']}/locations/{location}")
        await jobs.preempt(parent, request.path_params["job"], replica)
        return JSONResponse({})

    async def put_quota(request: Request) -> Response:
        supply.put(quota_from(await read_fields(request)))
        return JSONResponse({})

    calls = Starlette(
        routes=[
            Route(f"{_OURS}/{_JOB}:preempt", preempt, methods=["POST"]),
            Route(f"{_OURS}/quota", put_quota, methods=["PUT"]),
            Route("/{path:path}", resources.answer, methods=["GET", "POST", "PATCH", "DELETE"]),
        ],
        exception_handlers={
            ApiError: answer_refusal,
            HTTPException: answer_not_served,
            OSError: _answer_disk_full,
            Exception: _answer_failure,
        },
    )
    return guarded_app(
        WithInjections(app=_Authorized(calls, grants), injections=injections, service="vertex"), tokens
    )


async def _answer_disk_full(_request: Request, fault: Exception) -> Response:
    """429 for a full disk, which says that nothing was done: after a 5xx, callers must wait for a job that may exist."""
    if not is_disk_full(fault):
        raise fault
    what = f"The local stack's disk is full: {fault}. Free space; the stack then continues without a restart."
    return google_error(429, what, status="RESOURCE_EXHAUSTED")


async def _answer_failure(_request: Request, _error: Exception) -> Response:
    return google_error(500, "Internal error encountered.", status="INTERNAL")


class _Authorized:
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
            authorize(self._grants, f"vertex.{resource_method(scope)}", resources)
        except DeniedError as denied:
            await _denial_answer(denied, parts, Request(scope))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _denial_answer(denied: DeniedError, parts: list[str], request: Request) -> ASGIApp:
    if not denied.permission and not request.url.path.startswith(_OURS):
        return refuse_call(request)  # no role would help
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
