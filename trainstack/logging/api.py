"""The REST surface of Logging v2.

Source: https://cloud.google.com/logging/docs/reference/v2/rest
"""

import functools
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainstack.iam.authorization import DeniedError, authorize, permission_info, project_of
from trainstack.iam.service import Grants
from trainstack.json_bodies import google_error, json_object, read_body, refuse_call, refuse_disk_full
from trainstack.logging.entry import SURFACE
from trainstack.logging.filters import FilterTooCostlyError, LogFilterError
from trainstack.logging.metrics import MetricError
from trainstack.logging.service import (
    AlreadyExistsError,
    InvalidRequestError,
    LogService,
    NotFoundError,
)
from trainstack.logging.sinks import DEFAULT_UPDATE_MASK, ExportSink, SinkError

Handler: TypeAlias = Callable[["Context", Request], Awaitable[Response]]
Body: TypeAlias = Mapping[str, object]

DEFAULT_PAGE = 50
MAX_PAGE = 1000
MAX_BODY_BYTES = 10 * 1024 * 1024
_PROJECT = re.compile(r"projects/[^/\s]+")


def application(service: LogService, grants: Grants | None = None) -> Starlette:
    """The ASGI application. `GET /_stats`, which the real service does not have, shows the status of sinks.

    `grants` decide what accounts may call; without them, every method.
    """
    sinks, metrics, logs = (f"/v2/projects/{{project}}/{kind}" for kind in ("sinks", "metrics", "logs"))
    answered: tuple[tuple[str, str, str, Handler], ...] = (
        ("POST", "/v2/entries:write", "entries.write", _write),
        ("POST", "/v2/entries:list", "entries.list", _list),
        ("GET", logs, "logs.list", _list_logs),
        ("DELETE", f"{logs}/{{log:path}}", "logs.delete", _delete_log),
        ("GET", "/_stats", "_stats", _stats),
        ("POST", sinks, "sinks.create", _create_sink),
        ("GET", sinks, "sinks.list", _list_sinks),
        ("GET", f"{sinks}/{{sink}}", "sinks.get", _get_sink),
        ("PUT", f"{sinks}/{{sink}}", "sinks.update", _update_sink),
        ("PATCH", f"{sinks}/{{sink}}", "sinks.update", _update_sink),
        ("DELETE", f"{sinks}/{{sink}}", "sinks.delete", _delete_sink),
        ("POST", metrics, "metrics.create", _put_metric),
        ("GET", metrics, "metrics.list", _list_metrics),
        ("GET", f"{metrics}/{{metric:path}}", "metrics.get", _get_metric),
        ("PUT", f"{metrics}/{{metric:path}}", "metrics.update", _put_metric),
        ("DELETE", f"{metrics}/{{metric:path}}", "metrics.delete", _delete_metric),
    )
    return Starlette(
        routes=[
            Route(path, _with_permission(Context(service, grants), method, handler), methods=[verb])
            for verb, path, method, handler in answered
        ],
        exception_handlers={
            **dict.fromkeys(_REFUSALS, _answer_refusal),
            DeniedError: _answer_denial,
            OSError: refuse_disk_full,
            HTTPException: _answer_not_imitated,
        },
    )


class Context(NamedTuple):
    """What every call uses."""

    service: LogService
    grants: Grants | None

    def authorize(self, method: str, project: str) -> None:
        """Raises `DeniedError`. `project` is an id or number, with or without `projects/`."""
        on = project_of(self.grants, project.removeprefix("projects/"))
        authorize(self.grants, f"logging.{method}", {"project": on})


def _with_permission(
    context: Context, method: str, handler: Handler
) -> Callable[[Request], Awaitable[Response]]:
    """The handler of a method, for callers with the permission on the project in its path and no unknown parameters.

    A handler without a project in its path asks for the permission itself: its projects are in the body.
    """

    async def handle(request: Request) -> Response:
        if project := request.path_params.get("project", ""):
            context.authorize(method, project)
        elif method == "_stats":
            context.authorize(method, "")
        if faults := SURFACE.query_faults(method, request.query_params) if method in SURFACE.methods else ():
            raise InvalidRequestError("; ".join(faults) + "; leave it out")
        return await handler(context, request)

    return handle


_REFUSALS: Mapping[type[Exception], tuple[int, str]] = {
    InvalidRequestError: (400, "INVALID_ARGUMENT"),
    LogFilterError: (400, "INVALID_ARGUMENT"),
    FilterTooCostlyError: (400, "INVALID_ARGUMENT"),
    SinkError: (400, "INVALID_ARGUMENT"),
    MetricError: (400, "INVALID_ARGUMENT"),
    NotFoundError: (404, "NOT_FOUND"),
    AlreadyExistsError: (409, "ALREADY_EXISTS"),
}


async def _answer_refusal(_request: Request, fault: Exception) -> Response:
    code, status = _REFUSALS[type(fault)]
    return google_error(code, str(fault), status=status)


async def _answer_denial(_request: Request, denied: Exception) -> Response:
    """As clients report it, for example in https://github.com/genkit-ai/genkit/pull/3577."""
    if not isinstance(denied, DeniedError):
        raise denied
    info = permission_info(denied.permission, domain="iam.googleapis.com")
    return google_error(403, str(denied), status="PERMISSION_DENIED", details=[info])


async def _answer_not_imitated(request: Request, _fault: Exception) -> Response:
    return refuse_call(request)


async def _write(context: Context, request: Request) -> Response:
    body = await _body(request, "WriteLogEntriesRequest")
    entries = body.get("entries", [])
    if not isinstance(entries, list):
        raise InvalidRequestError("entries must be a list of log entries")
    for name in ("resource", "labels"):
        if not isinstance(body.get(name) or {}, dict):
            raise InvalidRequestError(f"{name} must be an object, found {body[name]!r}")
    faults = await run_in_threadpool(
        context.service.write,
        entries,
        body,
        partial_success=bool(body.get("partialSuccess")),
        dry_run=bool(body.get("dryRun")),
        permit=functools.partial(context.authorize, "entries.write"),
    )
    if not faults:
        return JSONResponse({})
    first = next(iter(faults))
    errors = {str(index): {"code": 3, "message": fault} for index, fault in faults.items()}
    kind = "type.googleapis.com/google.logging.v2.WriteLogEntriesPartialErrors"
    return google_error(
        400,
        f"Log entry with index {first} was refused: {faults[first]}"
        + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""),
        status="INVALID_ARGUMENT",
        details=[{"@type": kind, "logEntryErrors": errors}],
    )


async def _list(context: Context, request: Request) -> Response:
    body = await _body(request, "ListLogEntriesRequest")
    parents = _parents(body)
    for parent in parents:
        context.authorize("entries.list", parent)
    order = str(body.get("orderBy") or "timestamp asc").split()
    if order not in (["timestamp"], ["timestamp", "asc"], ["timestamp", "desc"]):
        raise InvalidRequestError(f"orderBy {' '.join(order)!r} must be 'timestamp asc' or 'timestamp desc'")
    entries, next_page_token = await run_in_threadpool(
        context.service.list,
        parents,
        str(body.get("filter") or ""),
        descending=order[-1] == "desc",
        page_size=_page_size(body.get("pageSize")),
        page_token=str(body.get("pageToken") or ""),
    )
    answer = {"entries": entries, "nextPageToken": next_page_token}
    return JSONResponse({key: value for key, value in answer.items() if value})


async def _stats(context: Context, _request: Request) -> Response:
    return JSONResponse(await run_in_threadpool(context.service.stats))


async def _create_sink(context: Context, request: Request) -> Response:
    given = await _body(request)
    return _sink_response(
        context.service.create_sink(_parent(request), given, unique_writer=_wants_unique_writer(request))
    )


async def _list_sinks(context: Context, request: Request) -> Response:
    sinks = {sink.full_name: sink.resource for sink in context.service.sinks_of(_parent(request))}
    return _page_response("sinks", sinks, request)


async def _get_sink(context: Context, request: Request) -> Response:
    return _sink_response(context.service.sink(_sink_name(request)))


async def _update_sink(context: Context, request: Request) -> Response:
    mask = tuple(filter(None, request.query_params.get("updateMask", "").split(",")))
    given = await _body(request)
    return _sink_response(
        context.service.update_sink(
            _sink_name(request),
            given,
            mask=mask or DEFAULT_UPDATE_MASK,
            unique_writer=_wants_unique_writer(request),
        )
    )


async def _delete_sink(context: Context, request: Request) -> Response:
    context.service.delete_sink(_sink_name(request))
    return JSONResponse({})


async def _list_logs(context: Context, request: Request) -> Response:
    names = await run_in_threadpool(context.service.logs_of, _parent(request))
    return _page_response("logNames", {name: name for name in names}, request)


async def _delete_log(context: Context, request: Request) -> Response:
    # The path is decoded once; a name over gRPC has been encoded twice.
    log_id = quote(unquote(request.path_params["log"]), safe="")
    parent = _parent(request)
    await run_in_threadpool(context.service.delete_log, parent, f"{parent}/logs/{log_id}")
    return JSONResponse({})


async def _list_metrics(context: Context, request: Request) -> Response:
    return _page_response("metrics", context.service.metrics_of(_parent(request)), request)


async def _put_metric(context: Context, request: Request) -> Response:
    name = unquote(request.path_params["metric"]) if "metric" in request.path_params else None
    return JSONResponse(context.service.put_metric(_parent(request), await _body(request), name=name))


async def _get_metric(context: Context, request: Request) -> Response:
    return JSONResponse(context.service.metric(_parent(request), unquote(request.path_params["metric"])))


async def _delete_metric(context: Context, request: Request) -> Response:
    context.service.delete_metric(_parent(request), unquote(request.path_params["metric"]))
    return JSONResponse({})


def _page_response(name: str, by_name: Mapping[str, object], request: Request) -> Response:
    """A page of what is sorted by name. Its token is the last name, so that it stays valid when others change."""
    given = request.query_params
    size = _page_size(
        int(given["pageSize"]) if given.get("pageSize", "").isdecimal() else given.get("pageSize")
    )
    rest = [key for key in by_name if key > given.get("pageToken", "")]
    answer = {name: [by_name[key] for key in rest[:size]]} if rest else {}
    return JSONResponse(answer | ({"nextPageToken": rest[size - 1]} if len(rest) > size else {}))


async def _body(request: Request, resource: str = "") -> Body:
    """The body, with its keys in camel case; snake case is accepted too. Raises `InvalidRequestError`."""
    try:
        body = json_object(_whole_characters(await read_body(request, most_bytes=MAX_BODY_BYTES)))
    except (ValueError, RecursionError) as fault:
        raise InvalidRequestError(str(fault)) from fault
    named = {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): value for key, value in body.items()}
    if resource and (faults := SURFACE.body_faults(resource, named)):
        raise InvalidRequestError("; ".join(faults) + "; leave it out")
    return named


def _whole_characters(raw: bytes) -> bytes:
    """The body with `?` for halves of surrogate pairs: a slightly wrong log entry is better than none."""
    if b"\\u" not in raw:
        return raw
    return json.dumps(json.loads(raw), ensure_ascii=False).encode(errors="replace")


def _parents(body: Body) -> list[str]:
    """The projects to list. A view of a log bucket means the whole project here."""
    given, ids = body.get("resourceNames") or [], body.get("projectIds") or []
    if not isinstance(given, list) or not isinstance(ids, list):
        raise InvalidRequestError("resourceNames must be a list of names such as projects/PROJECT")
    given = [*given, *(f"projects/{project}" for project in ids)]
    projects = [match[0] for name in given if (match := _PROJECT.match(str(name)))]
    if not given or len(projects) != len(given):
        raise InvalidRequestError(f"each of resourceNames must name a projects/PROJECT, found {given!r}")
    return list(dict.fromkeys(projects))


def _page_size(given: object) -> int:
    if given in (None, 0):
        return DEFAULT_PAGE
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidRequestError(f"pageSize {given!r} must be a number from 1 to {MAX_PAGE}")
    return min(given, MAX_PAGE)


def _parent(request: Request) -> str:
    return f"projects/{request.path_params['project']}"


def _sink_name(request: Request) -> str:
    return f"{_parent(request)}/sinks/{request.path_params['sink']}"


def _wants_unique_writer(request: Request) -> bool:
    """The Python client sends `True`."""
    return request.query_params.get("uniqueWriterIdentity", "").lower() == "true"


def _sink_response(sink: ExportSink) -> Response:
    return JSONResponse(dict(sink.resource))
