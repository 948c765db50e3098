"""JobService over REST: routes as the official clients call them.

`/v1` and `/v1beta1` are the API's versions (gcloud's beta commands use the latter);
the Python client polls operations under `/ui`.
`/emulator` is the local stack's own: what happens to jobs in the cloud by itself and here only on request.
"""

import asyncio
from collections.abc import Awaitable, Callable

from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainmaster.local.http import LoopbackOnly, google_error, json_value
from trainmaster.local.injections import Injections
from trainmaster.local.injections.http import WithInjections
from trainmaster.local.jobs.capacity.quota import BadQuotaError, quota_from
from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import InvalidJobError, Job, Message, read_mask
from trainmaster.local.jobs.resource.replica import CHIEF
from trainmaster.local.jobs.service import JobService, Parent
from trainmaster.local.tuning.ledger import TuningJob
from trainmaster.local.tuning.service import TuningService
from trainmaster.local.vertex.injections import named, subjects

_VERSIONS = ("v1", "v1beta1", "ui")
_OURS = "/emulator/v1"
_Jobs = JobService | TuningService
_Handler = Callable[[Request], Awaitable[Response]]

MAX_BODY_BYTES = 4 * 1024 * 1024


class Surface:
    """One handler for each call; each reads the request, asks the service and shows the answer."""

    def __init__(
        self, service: JobService, jobs: _Jobs, *, kind: type[Job], resource: Message, region: str
    ) -> None:
        """`jobs` answers for the jobs of this `kind`, whose messages look like `resource`."""
        self._service, self._jobs = service, jobs
        self._region = region
        self.collection = kind.collection
        self._resource = resource
        # A list of tuning jobs comes without their trials.
        self._listed = [field.name for field in self._resource.DESCRIPTOR.fields if field.name != "trials"]

    async def create(self, request: Request) -> Response:
        job = await self._jobs.create(self._parent(request), await _body(request))
        return await _job(request, job)

    async def get(self, request: Request) -> Response:
        return await _job(request, self._jobs.get(self._parent(request), request.path_params["job"]))

    async def list(self, request: Request) -> Response:
        query = request.query_params
        only = _only(query.get("readMask", ""), self._resource)
        jobs, token = self._jobs.list(
            self._parent(request),
            filter_=query.get("filter", ""),
            page_size=_integer("pageSize", query.get("pageSize", "0")),
            page_token=query.get("pageToken", ""),
        )
        integers = _wants_integers(request)
        answer: dict[str, object] = {}
        if jobs:
            answer[self.collection] = [
                job.to_json(enums_as_integers=integers, only=only or self._listed) for job in jobs
            ]
        if token:
            answer["nextPageToken"] = token
        return JSONResponse(answer)

    async def cancel(self, request: Request) -> Response:
        await self._jobs.cancel(self._parent(request), request.path_params["job"])
        return JSONResponse({})

    async def delete(self, request: Request) -> Response:
        return JSONResponse(await self._jobs.delete(self._parent(request), request.path_params["job"]))

    async def operation(self, request: Request) -> Response:
        return JSONResponse(self._service.operation(self._operation_name(request)))

    async def operations(self, request: Request) -> Response:
        owner = self._parent(request).name
        if job := request.path_params.get("job"):
            owner += f"/{self.collection}/{job}"
        return JSONResponse({"operations": self._service.operations(owner)})

    async def delete_operation(self, request: Request) -> Response:
        self._service.delete_operation(self._operation_name(request))
        return JSONResponse({})

    async def end_operation(self, request: Request) -> Response:
        """Cancelling is best effort, and every operation here is done when it is first seen."""
        self._service.operation(self._operation_name(request))
        return JSONResponse({})

    async def locations(self, request: Request) -> Response:
        project = request.path_params["project"]
        return JSONResponse({"locations": [_location(project, self._region)]})

    async def location(self, request: Request) -> Response:
        return JSONResponse(_location(request.path_params["project"], request.path_params["location"]))

    def _parent(self, request: Request) -> Parent:
        return self._service.parent(request.path_params["project"], request.path_params["location"])

    def _operation_name(self, request: Request) -> str:
        # A job's operations are also found below the job, where older clients look.
        return f"{self._parent(request).name}/operations/{request.path_params['operation']}"


class Happenings:
    """What no client of the service can ask for."""

    def __init__(self, service: JobService) -> None:
        self._service = service

    async def preempt(self, request: Request) -> Response:
        where = request.path_params
        body = await _body(request) if await request.body() else {}
        replica = body.get("replica", CHIEF.name) if isinstance(body, dict) else None
        if not isinstance(replica, str) or set(body if isinstance(body, dict) else ()) - {"replica"}:
            raise ApiError(
                Status.INVALID_ARGUMENT,
                f'Expected {{"replica": "{CHIEF.name}"}} or nothing, found {body!r:.80}.',
            )
        parent = self._service.parent(where["project"], where["location"])
        await self._service.preempt(parent, where["job"], replica)
        return JSONResponse({})

    async def put_quota(self, request: Request) -> Response:
        try:
            self._service.supply.put(quota_from(await _body(request)))
        except BadQuotaError as wrong:
            raise ApiError(Status.INVALID_ARGUMENT, str(wrong)) from wrong
        return JSONResponse({})


def application(
    service: JobService, tuning: TuningService, *, region: str, injections: Injections
) -> LoopbackOnly:
    """The ASGI application of one JobService, with the injections at every call of it."""
    surfaces = [
        Surface(service, service, kind=Job, resource=CustomJob.pb(CustomJob()), region=region),
        Surface(
            service,
            tuning,
            kind=TuningJob,
            resource=HyperparameterTuningJob.pb(HyperparameterTuningJob()),
            region=region,
        ),
    ]
    routes = [
        route for version in _VERSIONS for surface in surfaces for route in _routes(surface, f"/{version}")
    ]
    happenings = Happenings(service)
    preempt = f"{_OURS}/projects/{{project}}/locations/{{location}}/customJobs/{{job}}:preempt"
    calls = Starlette(
        routes=[
            *routes,
            Route(preempt, happenings.preempt, methods=["POST"]),
            Route(f"{_OURS}/quota", happenings.put_quota, methods=["PUT"]),
        ],
        exception_handlers={ApiError: _refused, HTTPException: _not_routed, Exception: _broken},
    )
    return LoopbackOnly(
        WithInjections(app=calls, injections=injections, service="vertex", named=named, subjects=subjects)
    )


def _routes(surface: Surface, version: str) -> list[Route]:
    locations = f"{version}/projects/{{project}}/locations"
    here = f"{locations}/{{location}}"
    jobs = f"{here}/{surface.collection}"
    operations = [f"{here}/operations", f"{jobs}/{{job}}/operations"]
    table: list[tuple[str, str, _Handler]] = [
        ("POST", jobs, surface.create),
        ("GET", jobs, surface.list),
        ("POST", f"{jobs}/{{job}}:cancel", surface.cancel),
        ("GET", f"{jobs}/{{job}}", surface.get),
        ("DELETE", f"{jobs}/{{job}}", surface.delete),
        *(("GET", path, surface.operations) for path in operations),
        *(("GET", f"{path}/{{operation}}", surface.operation) for path in operations),
        *(("DELETE", f"{path}/{{operation}}", surface.delete_operation) for path in operations),
        *(("POST", f"{path}/{{operation}}:cancel", surface.end_operation) for path in operations),
        *(("POST", f"{path}/{{operation}}:wait", surface.operation) for path in operations),
        ("GET", locations, surface.locations),
        ("GET", here, surface.location),
    ]
    return [Route(path, handler, methods=[method]) for method, path, handler in table]


async def _job(request: Request, job: Job) -> Response:
    # In a thread: a study of a thousand trials takes a while to write down, and others are waiting.
    return await asyncio.to_thread(
        lambda: JSONResponse(job.to_json(enums_as_integers=_wants_integers(request)))
    )


def _wants_integers(request: Request) -> bool:
    # The Python client asks with `$alt=json;enum-encoding=int`.
    return "enum-encoding=int" in request.query_params.get("$alt", "")


async def _body(request: Request) -> object:
    raw = await request.body()
    if len(raw) > MAX_BODY_BYTES:
        raise ApiError(
            Status.INVALID_ARGUMENT, f"Request payload size exceeds the limit: {MAX_BODY_BYTES} bytes."
        )
    try:
        return json_value(raw)
    except ValueError as error:
        raise ApiError(Status.INVALID_ARGUMENT, f"Invalid JSON payload received. {error}") from error


def _only(mask: str, resource: Message) -> list[str]:
    try:
        return read_mask(mask, resource)
    except InvalidJobError as error:
        raise ApiError(Status.INVALID_ARGUMENT, str(error)) from error


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ApiError(Status.INVALID_ARGUMENT, f"{name}: expected a number, found {text!r}.") from error


def _location(project: str, location: str) -> dict[str, str]:
    return {"name": f"projects/{project}/locations/{location}", "locationId": location}


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return google_error(error.status.http, str(error), status=error.status.name)


async def _not_routed(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    what = f"{request.method} {request.url.path} is no call of this JobService."
    return google_error(error.status_code, what, status="NOT_FOUND")


async def _broken(_request: Request, _error: Exception) -> Response:
    return google_error(500, "Internal error encountered.", status="INTERNAL")
