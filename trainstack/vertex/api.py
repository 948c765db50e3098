"""Vertex AI's application over REST: who may call, and in what form it refuses.

`/emulator` is the local stack's own: events that happen to jobs by themselves in the cloud, and here only on request.
"""

import functools

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trainstack.errors import ApiError, InvalidArgumentError
from trainstack.iam.authentication import guarded_app
from trainstack.iam.authorization import DeniedError, permission_info
from trainstack.iam.principals import Tokens
from trainstack.injections.http import WithInjections
from trainstack.jobs.capacity import Supply, quota_from
from trainstack.jobs.resource.job import CHIEF
from trainstack.jobs.resource.machines import require_region
from trainstack.jobs.service import JobService
from trainstack.jobs.weather import Weather, schedule_from
from trainstack.json_bodies import (
    answer_not_served,
    answer_refusal,
    google_error,
    refuse_call,
    refuse_disk_full,
)
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
    weather: Weather,
    tokens: Tokens | None = None,
) -> ASGIApp:
    """The ASGI application of one stack's jobs and resources, with injections at every call, for principals with `tokens`."""

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
        supply.quota = quota_from(await read_fields(request))
        return JSONResponse({})

    async def play_weather(request: Request) -> Response:
        if request.method == "PUT":
            weather.play(schedule_from(await read_fields(request)))
        elif request.method == "DELETE":
            weather.stop()
        return JSONResponse(weather.to_json())

    calls = Starlette(
        routes=[
            Route(f"{_OURS}/{_JOB}:preempt", preempt, methods=["POST"]),
            Route(f"{_OURS}/quota", put_quota, methods=["PUT"]),
            Route(f"{_OURS}/weather", play_weather, methods=["GET", "PUT", "DELETE"]),
            Route("/{path:path}", resources.answer, methods=["GET", "POST", "PATCH", "DELETE"]),
        ],
        exception_handlers={
            ApiError: answer_refusal,
            DeniedError: _answer_denial,
            HTTPException: answer_not_served,
            # A full disk is 429, which says that nothing was done: after a 5xx, callers must wait for a job that may exist.
            OSError: functools.partial(refuse_disk_full, code=429),
            Exception: _answer_failure,
        },
    )
    return guarded_app(WithInjections(app=calls, injections=supply.injections, service="vertex"), tokens)


async def _answer_failure(_request: Request, _error: Exception) -> Response:
    return google_error(500, "Internal error encountered.", status="INTERNAL")


async def _answer_denial(request: Request, denied: Exception) -> Response:
    """403 in the form of https://github.com/GoogleCloudPlatform/t5x-on-vertex-ai/issues/5"""
    if not isinstance(denied, DeniedError):
        raise denied
    if not denied.permission:
        return refuse_call(request)  # no role would help
    is_job = denied.permission.rpartition(".")[2] not in ("create", "list")
    # The path is /v1/projects/PROJECT/locations/LOCATION/COLLECTION[/JOB[:VERB]].
    resource = "/".join(request.url.path.split("/")[2 : 8 if is_job else 6]).partition(":")[0]
    return google_error(
        403,
        f"Permission '{denied.permission}' denied on resource '//{_SERVICE}/{resource}' (or it may not exist).",
        status="PERMISSION_DENIED",
        details=[permission_info(denied.permission, domain=_SERVICE, resource=resource)],
    )
