"""The REST surface of Monitoring v3: lists of time series.

Source: https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.iam.authentication import answer_denial
from trainstack.iam.authorization import DeniedError, authorize, project_of
from trainstack.iam.service import Grants
from trainstack.json_bodies import answer_not_served, answer_refusal
from trainstack.monitoring.query import answered_series, query_of
from trainstack.monitoring.samples import PREFIX, Samples
from trainstack.surface import load_surface

SURFACE = load_surface(Path(__file__).with_name("surface.toml"))
METHOD = "timeSeries.list"
MAX_POINTS = 100_000
_MOST_DIGITS = 9
_DENIED = "Permission {permission} denied (or the resource may not exist)."
"""Source: https://github.com/hashicorp/terraform-provider-google/issues/8420"""


def application(samples: Samples, grants: Grants | None = None) -> Starlette:
    """The ASGI application. `grants` decide who may read; without them, everyone."""

    async def list_series(request: Request) -> JSONResponse:
        project = request.path_params["project"]
        authorize(grants, "monitoring.timeSeries.list", {"project": project_of(grants, project)})
        if faults := SURFACE.query_faults(METHOD, request.query_params):
            raise InvalidArgumentError("; ".join(faults) + "; leave it out")
        return JSONResponse(await run_in_threadpool(_page, samples, request, project))

    return Starlette(
        routes=[Route("/v3/projects/{project}/timeSeries", list_series, methods=["GET"])],
        exception_handlers={
            ApiError: answer_refusal,
            DeniedError: partial(answer_denial, sentence=_DENIED),
            HTTPException: answer_not_served,
        },
    )


def _page(samples: Samples, request: Request, project: str) -> dict[str, Any]:
    given = request.query_params
    query = query_of(given, given.getlist("aggregation.groupByFields"))
    if not query.metric.startswith(PREFIX):
        message = f'Cannot find metric(s) that match type = "{query.metric}".'
        raise ApiError(Status.NOT_FOUND, message)
    found = list(answered_series(query, samples.of_metric(query.metric), project))
    size, first = _number(given.get("pageSize"), "pageSize"), _number(given.get("pageToken"), "pageToken")
    end = first + min(size or MAX_POINTS, MAX_POINTS)
    # A page counts points: a series may begin on it and continue on the next.
    points = [(number, point) for number, series in enumerate(found) for point in series["points"]]
    page = [
        {**found[number], "points": [point for _, point in some]}
        for number, some in groupby(points[first:end], key=itemgetter(0))
    ]
    if given.get("view") == "HEADERS":
        page, end = [{**series, "points": []} for series in found], len(points)
    answer: dict[str, Any] = {"timeSeries": page, "unit": "10^2.%"} if page else {}
    return answer | ({"nextPageToken": str(end)} if end < len(points) else {})


def _number(text: str | None, name: str) -> int:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InvalidArgumentError(f"{name}: expected what an answer gave, or a number, found {text!r}.")
    return int(text or 0)
