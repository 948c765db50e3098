"""The REST surface of Logging v2.

Source: https://cloud.google.com/logging/docs/reference/v2/rest
"""

import functools
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainstack.errors import ApiError, InvalidArgumentError
from trainstack.iam.authentication import answer_denial
from trainstack.iam.authorization import DeniedError, authorize, project_of
from trainstack.iam.service import Grants
from trainstack.json_bodies import (
    answer_not_served,
    answer_refusal,
    google_error,
    json_object,
    read_body,
    refuse_disk_full,
)
from trainstack.logging.entry import SURFACE
from trainstack.logging.service import LogService
from trainstack.logging.store import Kind

Handler: TypeAlias = Callable[["Call"], Awaitable[object]]
"""Answers a call, with JSON or a response."""
Body: TypeAlias = Mapping[str, object]

DEFAULT_PAGE = 50
MAX_PAGE = 1000
MAX_BODY_BYTES = 10 * 1024 * 1024
_PROJECT = re.compile(r"projects/[^/\s]+")


def application(service: LogService, grants: Grants | None = None) -> Starlette:
    """The ASGI application. `GET /_stats`, which the real service does not have, shows the status of sinks.

    `grants` decide what accounts may call; without them, every method.
    """
    project = "/v2/projects/{project}"
    answered: list[tuple[str, str, str, Handler]] = [
        ("POST", "/v2/entries:write", "entries.write", _write),
        ("POST", "/v2/entries:list", "entries.list", _list),
        ("GET", f"{project}/logs", "logs.list", _list_logs),
        ("DELETE", f"{project}/logs/{{log:path}}", "logs.delete", _delete_log),
        ("GET", "/_stats", "_stats", _stats),
        ("PATCH", f"{project}/sinks/{{id:path}}", "sinks.update", functools.partial(_update, "sinks")),
    ]
    kinds: tuple[Kind, ...] = ("sinks", "metrics")
    for kind in kinds:
        for verb, place, method, handler in _OF_EVERY_KIND:
            of_kind = functools.partial(handler, kind)
            answered.append((verb, f"{project}/{kind}{place}", f"{kind}.{method}", of_kind))
    return Starlette(
        routes=[
            Route(path, _with_permission(service, grants, method, handler), methods=[verb])
            for verb, path, method, handler in answered
        ],
        exception_handlers={
            ApiError: answer_refusal,
            DeniedError: answer_denial,
            OSError: refuse_disk_full,
            HTTPException: answer_not_served,
        },
    )


class Call(NamedTuple):
    """A request, and what every method uses."""

    request: Request
    service: LogService
    grants: Grants | None

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def parent(self) -> str:
        return f"projects/{self.request.path_params['project']}"

    def full_name(self, kind: Kind) -> str:
        """Of the sink or metric in the path."""
        return f"{self.parent}/{kind}/{unquote(self.request.path_params['id'])}"

    @property
    def options(self) -> dict[str, Any]:
        """Those of a sink's creation and update. The Python client sends `True`."""
        mask = tuple(filter(None, self.query.get("updateMask", "").split(",")))
        return {"mask": mask, "unique_writer": self.query.get("uniqueWriterIdentity", "").lower() == "true"}

    def authorize(self, method: str, project: str) -> None:
        """Raises `DeniedError`. `project` is an id or number, with or without `projects/`."""
        on = project_of(self.grants, project.removeprefix("projects/"))
        authorize(self.grants, f"logging.{method}", {"project": on})


def _with_permission(
    service: LogService, grants: Grants | None, method: str, handler: Handler
) -> Callable[[Request], Awaitable[Response]]:
    """The handler of a method, for callers with the permission on the project in its path and no unknown parameters.

    A handler without a project in its path asks for the permission itself: its projects are in the body.
    """

    async def handle(request: Request) -> Response:
        call = Call(request, service, grants)
        project = request.path_params.get("project", "")
        if project or method == "_stats":
            call.authorize(method, project)
        if faults := SURFACE.query_faults(method, call.query) if method in SURFACE.methods else ():
            raise InvalidArgumentError("; ".join(faults) + "; leave it out")
        answer = await handler(call)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return handle


async def _write(call: Call) -> object:
    body = await _body(call, "WriteLogEntriesRequest")
    entries = body.get("entries", [])
    if not isinstance(entries, list):
        raise InvalidArgumentError("entries must be a list of log entries")
    for name in ("resource", "labels"):
        if not isinstance(body.get(name) or {}, dict):
            raise InvalidArgumentError(f"{name} must be an object, found {body[name]!r}")
    faults = await run_in_threadpool(
        call.service.write,
        entries,
        body,
        partial_success=bool(body.get("partialSuccess")),
        dry_run=bool(body.get("dryRun")),
        permit=functools.partial(call.authorize, "entries.write"),
    )
    if not faults:
        return {}
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


async def _list(call: Call) -> object:
    body = await _body(call, "ListLogEntriesRequest")
    parents = _parents(body)
    for parent in parents:
        call.authorize("entries.list", parent)
    order = str(body.get("orderBy") or "timestamp asc").split()
    if order not in (["timestamp"], ["timestamp", "asc"], ["timestamp", "desc"]):
        raise InvalidArgumentError(f"orderBy {' '.join(order)!r} must be 'timestamp asc' or 'timestamp desc'")
    entries, next_page_token = await run_in_threadpool(
        call.service.list,
        parents,
        str(body.get("filter") or ""),
        descending=order[-1] == "desc",
        page_size=_page_size(body.get("pageSize")),
        page_token=str(body.get("pageToken") or ""),
    )
    answer = {"entries": entries, "nextPageToken": next_page_token}
    return {key: value for key, value in answer.items() if value}


async def _stats(call: Call) -> object:
    return await run_in_threadpool(call.service.stats)


async def _create(kind: Kind, call: Call) -> object:
    options = call.options if kind == "sinks" else {}
    return call.service.create(kind, call.parent, await _body(call), **options)


async def _list_page(kind: Kind, call: Call) -> object:
    return _page(kind, call.service.resources_of(kind, call.parent), call)


async def _get(kind: Kind, call: Call) -> object:
    return call.service.resource(kind, call.full_name(kind))


async def _update(kind: Kind, call: Call) -> object:
    options = call.options if kind == "sinks" else {}
    return call.service.update(kind, call.full_name(kind), await _body(call), **options)


async def _delete(kind: Kind, call: Call) -> object:
    call.service.delete(kind, call.full_name(kind))
    return {}


_OF_EVERY_KIND: tuple[tuple[str, str, str, Callable[[Kind, Call], Awaitable[object]]], ...] = (
    ("POST", "", "create", _create),
    ("GET", "", "list", _list_page),
    ("GET", "/{id:path}", "get", _get),
    ("PUT", "/{id:path}", "update", _update),
    ("DELETE", "/{id:path}", "delete", _delete),
)


async def _list_logs(call: Call) -> object:
    names = await run_in_threadpool(call.service.logs_of, call.parent)
    return _page("logNames", {name: name for name in names}, call)


async def _delete_log(call: Call) -> object:
    # The path is decoded once; a name over gRPC has been encoded twice.
    log_id = quote(unquote(call.request.path_params["log"]), safe="")
    await run_in_threadpool(call.service.delete_log, call.parent, f"{call.parent}/logs/{log_id}")
    return {}


def _page(name: str, by_name: Mapping[str, object], call: Call) -> Body:
    """A page of what is sorted by name. Its token is the last name, so that it stays valid when others change."""
    asked = call.query.get("pageSize")
    size = _page_size(int(asked) if asked and asked.isdecimal() else asked)
    rest = [key for key in by_name if key > call.query.get("pageToken", "")]
    answer = {name: [by_name[key] for key in rest[:size]]} if rest else {}
    return answer | ({"nextPageToken": rest[size - 1]} if len(rest) > size else {})


async def _body(call: Call, resource: str = "") -> Body:
    """The body, with its keys in camel case; snake case is accepted too. Raises `InvalidArgumentError`."""
    try:
        body = json_object(_whole_characters(await read_body(call.request, most_bytes=MAX_BODY_BYTES)))
    except (ValueError, RecursionError) as fault:
        raise InvalidArgumentError(str(fault)) from fault
    named = {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): value for key, value in body.items()}
    if resource and (faults := SURFACE.body_faults(resource, named)):
        raise InvalidArgumentError("; ".join(faults) + "; leave it out")
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
        raise InvalidArgumentError("resourceNames must be a list of names such as projects/PROJECT")
    given = [*given, *(f"projects/{project}" for project in ids)]
    projects = [match[0] for name in given if (match := _PROJECT.match(str(name)))]
    if not given or len(projects) != len(given):
        raise InvalidArgumentError(f"each of resourceNames must name a projects/PROJECT, found {given!r}")
    return list(dict.fromkeys(projects))


def _page_size(given: object) -> int:
    if given in (None, 0):
        return DEFAULT_PAGE
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidArgumentError(f"pageSize {given!r} must be a number from 1 to {MAX_PAGE}")
    return min(given, MAX_PAGE)
