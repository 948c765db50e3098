"""JobService over REST, with the routes that the official clients call.

`/v1` and `/v1beta1` are the API's versions (gcloud's beta commands use the latter). `/emulator` is the local
stack's own: events that happen to jobs by themselves in the cloud, and here only on request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.iam.authentication import guarded_app
from trainstack.iam.authorization import DeniedError, authorize, permission_info, project_of
from trainstack.iam.principals import Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.injections.http import WithInjections, resource_method
from trainstack.jobs.capacity.quota import Supply, quota_from
from trainstack.jobs.collection import Collection
from trainstack.jobs.listing.catalogue import AnyJob
from trainstack.jobs.resource.errors import ApiError, InvalidArgumentError
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.resource.machines import require_region
from trainstack.jobs.resource.replica import CHIEF
from trainstack.jobs.service import JobService
from trainstack.json_bodies import google_error, is_disk_full, read_object, refuse_call
from trainstack.project import project_number
from trainstack.tuning.service import TuningService
from trainstack.vertex.resources.rest import Resources, query_faults

_SERVICE = "aiplatform.googleapis.com"
_VERSIONS = ("v1", "v1beta1")
_OURS = "/emulator/v1"
_HERE = "projects/{project}/locations/{location}"
_Row = tuple[str, str, Callable[[Request], Awaitable[Response]]]

MAX_BODY_BYTES = 4 * 1024 * 1024


class Calls(Generic[AnyJob]):
    """One handler for each call on the jobs of one kind: parses the request, performs it and renders the response."""

    def __init__(self, jobs: Collection[AnyJob]) -> None:
        self._jobs = jobs
        self._collection = jobs.kind.collection

    def rows(self) -> Iterator[_Row]:
        for version in _VERSIONS:
            path = f"/{version}/{_HERE}/{self._collection}"
            yield "POST", path, self.create
            yield "GET", path, self.list
            yield "POST", f"{path}/{{job}}:cancel", self.cancel
            yield "GET", f"{path}/{{job}}", self.get
            yield "DELETE", f"{path}/{{job}}", self.delete

    async def create(self, request: Request) -> Response:
        return await _job(request, self._jobs.create(*_place(request), await _body(request)))

    async def get(self, request: Request) -> Response:
        return await _job(request, self._jobs.get(_parent(request), request.path_params["job"]))

    async def list(self, request: Request) -> Response:
        query = request.query_params
        if faults := query_faults(f"List{self._jobs.kind.kind}s", request):
            raise InvalidArgumentError(*faults)
        jobs, token = self._jobs.page(
            _parent(request),
            filter_=query.get("filter", ""),
            size=_integer("pageSize", query.get("pageSize", "0")),
            token=query.get("pageToken", ""),
        )
        integers = _wants_integers(request)
        shown = [job.to_json(enums_as_integers=integers, listed=True) for job in jobs]
        return JSONResponse(
            {**({self._collection: shown} if shown else {}), **({"nextPageToken": token} if token else {})}
        )

    async def cancel(self, request: Request) -> Response:
        self._jobs.cancel(_parent(request), request.path_params["job"])
        return JSONResponse({})

    async def delete(self, request: Request) -> Response:
        return JSONResponse(await self._jobs.delete(_parent(request), request.path_params["job"]))


def application(
    jobs: JobService,
    tuning: TuningService,
    supply: Supply,
    resources: Resources,
    *,
    injections: Injections,
    tokens: Tokens | None = None,
    grants: Grants | None = None,
) -> ASGIApp:
    """The ASGI application of one JobService, with injections at every call, for principals with `tokens` and `grants`."""

    async def preempt(request: Request) -> Response:
        body = await _body(request, may_be_empty=True)
        replica = body.get("replica", CHIEF.name)
        if not isinstance(replica, str) or body.keys() - {"replica"}:
            raise InvalidArgumentError(
                f'Expected {{"replica": "{CHIEF.name}"}} or an empty body, found {body!r:.80}.',
            )
        await jobs.preempt(_parent(request), request.path_params["job"], replica)
        return JSONResponse({})

    async def put_quota(request: Request) -> Response:
        supply.put(quota_from(await _body(request)))
        return JSONResponse({})

    table = [
        *Calls(jobs).rows(),
        *Calls(tuning).rows(),
        ("POST", f"{_OURS}/{_HERE}/customJobs/{{job}}:preempt", preempt),
        ("PUT", f"{_OURS}/quota", put_quota),
    ]
    routes = [Route(path, handler, methods=[method]) for method, path, handler in table]
    calls = Starlette(
        routes=[*routes, Route("/{path:path}", resources.answer, methods=["GET", "POST", "PATCH", "DELETE"])],
        exception_handlers={
            ApiError: _answer_refusal,
            HTTPException: _answer_not_served,
            OSError: _answer_disk_full,
            Exception: _answer_failure,
        },
    )
    return guarded_app(
        WithInjections(app=_Authorized(calls, grants), injections=injections, service="vertex"), tokens
    )


def _place(request: Request) -> tuple[str, str]:
    """The project's number, for an id or number in the path, and the location."""
    location = request.path_params["location"]
    require_region(location)
    return project_number(request.path_params["project"]), location


def _parent(request: Request) -> str:
    return "projects/{}/locations/{}".format(*_place(request))


async def _job(request: Request, job: VertexJob) -> Response:
    # In a thread: serializing a study of a thousand trials takes a while, and other requests wait.
    return await asyncio.to_thread(
        lambda: JSONResponse(job.to_json(enums_as_integers=_wants_integers(request)))
    )


def _wants_integers(request: Request) -> bool:
    # The Python client requests this with `$alt=json;enum-encoding=int`.
    return "enum-encoding=int" in request.query_params.get("$alt", "")


async def _body(request: Request, *, may_be_empty: bool = False) -> dict[str, Any]:
    try:
        return await read_object(request, most_bytes=MAX_BODY_BYTES, may_be_empty=may_be_empty)
    except ValueError as error:
        raise InvalidArgumentError(f"Invalid JSON payload received: {error}.") from error


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: expected a number, found {text!r}.") from error


async def _answer_refusal(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return google_error(error.status.http, str(error), status=error.status.name)


async def _answer_disk_full(_request: Request, fault: Exception) -> Response:
    """429 for a full disk, which says that nothing was done: after a 5xx, callers must wait for a job that may exist."""
    if not is_disk_full(fault):
        raise fault
    what = f"The local stack's disk is full: {fault}. Free space; the stack then continues without a restart."
    return google_error(429, what, status="RESOURCE_EXHAUSTED")


async def _answer_not_served(request: Request, _error: Exception) -> Response:
    return refuse_call(request)


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
