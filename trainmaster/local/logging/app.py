"""The REST surface of Logging v2.

Source: https://cloud.google.com/logging/docs/reference/v2/rest
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainmaster.local.http import google_error, json_value
from trainmaster.local.logging.entry import Defaults
from trainmaster.local.logging.filters import FilterError
from trainmaster.local.logging.service import (
    DEFAULT_PAGE,
    MAX_PAGE,
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
    Service,
)
from trainmaster.local.logging.sinks import DEFAULT_UPDATE_MASK, Sink, SinkError

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_PARENT = re.compile(r"(?:projects|organizations|folders|billingAccounts)/[^/\s]+")
MAX_BODY_BYTES = 10 * 1024 * 1024


class Api:
    """Requests to service calls and back."""

    def __init__(self, service: Service, stats: Callable[[], Mapping[str, object]]) -> None:
        self._service = service
        self._stats = stats

    def routes(self) -> list[Route]:
        kinds = "projects", "organizations", "folders", "billingAccounts"
        routes = [
            Route("/v2/entries:write", _answering(self.write), methods=["POST"]),
            Route("/v2/entries:list", _answering(self.list), methods=["POST"]),
            Route("/v2/entries:tail", _answering(self.tail), methods=["POST"]),
            Route("/_stats", _answering(self.stats), methods=["GET"]),
        ]
        for kind in kinds:
            parent = f"/v2/{kind}/{{owner}}"
            routes += [
                Route(f"{parent}/logs", _answering(self.logs), methods=["GET"]),
                Route(f"{parent}/logs/{{log:path}}", _answering(self.delete_log), methods=["DELETE"]),
                Route(f"{parent}/sinks", _answering(self.create_sink), methods=["POST"]),
                Route(f"{parent}/sinks", _answering(self.list_sinks), methods=["GET"]),
                Route(f"{parent}/sinks/{{sink}}", _answering(self.get_sink), methods=["GET"]),
                Route(f"{parent}/sinks/{{sink}}", _answering(self.update_sink), methods=["PUT", "PATCH"]),
                Route(f"{parent}/sinks/{{sink}}", _answering(self.delete_sink), methods=["DELETE"]),
            ]
        return routes

    async def write(self, request: Request) -> Response:
        body = await _body(request)
        entries = body.get("entries")
        if not isinstance(entries, list) or not entries:
            raise InvalidRequestError("entries must be a list with at least one log entry")
        defaults = Defaults(
            log_name=str(_either(body, "logName", "log_name") or ""),
            resource=_mapping(body, "resource"),
            labels=_mapping(body, "labels"),
        )
        written = await run_in_threadpool(
            self._service.write,
            entries,
            defaults,
            partial_success=bool(_either(body, "partialSuccess", "partial_success")),
            dry_run=bool(_either(body, "dryRun", "dry_run")),
        )
        if not written.faults:
            return JSONResponse({})
        first = next(iter(written.faults))
        errors = {str(at): {"code": 3, "message": fault} for at, fault in written.faults.items()}
        kind = "type.googleapis.com/google.logging.v2.WriteLogEntriesPartialErrors"
        return google_error(
            400,
            f"Log entry with index {first} was refused: {written.faults[first]}"
            + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""),
            status="INVALID_ARGUMENT",
            details=[{"@type": kind, "logEntryErrors": errors}],
        )

    async def list(self, request: Request) -> Response:
        body = await _body(request)
        order = str(_either(body, "orderBy", "order_by") or "timestamp asc").split()
        if order not in (["timestamp"], ["timestamp", "asc"], ["timestamp", "desc"]):
            raise InvalidRequestError(
                f"orderBy {' '.join(order)!r} must be 'timestamp asc' or 'timestamp desc'"
            )
        page = await run_in_threadpool(
            self._service.list,
            _parents(body),
            str(body.get("filter") or ""),
            descending=order[-1] == "desc",
            page_size=_page_size(_either(body, "pageSize", "page_size")),
            page_token=str(_either(body, "pageToken", "page_token") or ""),
        )
        answer: dict[str, object] = {"entries": list(page.entries)} if page.entries else {}
        if page.next_page_token:
            answer["nextPageToken"] = page.next_page_token
        return JSONResponse(answer)

    async def tail(self, _request: Request) -> Response:
        return google_error(
            501,
            "entries:tail is a two-way gRPC stream and this emulator speaks REST; list entries newer than the last.",
            status="UNIMPLEMENTED",
        )

    async def logs(self, request: Request) -> Response:
        names = await run_in_threadpool(self._service.log_names, _parent(request))
        return JSONResponse({"logNames": list(names)} if names else {})

    async def delete_log(self, request: Request) -> Response:
        # The server has decoded the path once; a log's name keeps its id encoded.
        log_id = quote(request.path_params["log"], safe="-_.~")
        await run_in_threadpool(self._service.delete_log, f"{_parent(request)}/logs/{log_id}")
        return JSONResponse({})

    async def create_sink(self, request: Request) -> Response:
        sink = self._service.create_sink(
            _parent(request), await _body(request), unique_writer=_flag(request, "uniqueWriterIdentity")
        )
        return _shown(sink)

    async def list_sinks(self, request: Request) -> Response:
        sinks = self._service.sinks_of(_parent(request))
        return JSONResponse({"sinks": [dict(sink.resource) for sink in sinks]} if sinks else {})

    async def get_sink(self, request: Request) -> Response:
        return _shown(self._service.sink(_sink_name(request)))

    async def update_sink(self, request: Request) -> Response:
        mask = (
            tuple(filter(None, request.query_params.get("updateMask", "").split(","))) or DEFAULT_UPDATE_MASK
        )
        sink = self._service.update_sink(
            _sink_name(request),
            await _body(request),
            mask=mask,
            unique_writer=_flag(request, "uniqueWriterIdentity"),
        )
        return _shown(sink)

    async def delete_sink(self, request: Request) -> Response:
        self._service.delete_sink(_sink_name(request))
        return JSONResponse({})

    async def stats(self, _request: Request) -> Response:
        return JSONResponse(dict(await run_in_threadpool(self._stats)))


def create_app(service: Service, stats: Callable[[], Mapping[str, object]]) -> Starlette:
    """The ASGI application; `stats` is what `GET /_stats` shows, which the real service does not have."""
    return Starlette(routes=Api(service, stats).routes())


def _answering(handler: Handler) -> Handler:
    """The handler with every refusal turned into Google's error body."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except (InvalidRequestError, FilterError, SinkError) as fault:
            return google_error(400, str(fault), status="INVALID_ARGUMENT")
        except NotFoundError as fault:
            return google_error(404, str(fault), status="NOT_FOUND")
        except AlreadyExistsError as fault:
            return google_error(409, str(fault), status="ALREADY_EXISTS")

    return answer


async def _body(request: Request) -> dict[str, object]:
    raw = await request.body()
    if len(raw) > MAX_BODY_BYTES:
        raise InvalidRequestError(f"the request has {len(raw)} bytes, at most {MAX_BODY_BYTES} are allowed")
    try:
        body = json_value(_whole_characters(raw))
    except (ValueError, RecursionError) as fault:
        raise InvalidRequestError(f"the body is no JSON: {fault}") from fault
    if not isinstance(body, dict):
        raise InvalidRequestError(f"the body must be an object, found {type(body).__name__}")
    return body


def _whole_characters(raw: bytes) -> bytes:
    """The body with `?` for halves of surrogate pairs: a log entry that is nearly right is better than none."""
    if b"\\u" not in raw:
        return raw
    return json.dumps(json.loads(raw), ensure_ascii=False).encode(errors="replace")


def _either(body: Mapping[str, object], camel: str, snake: str) -> object:
    return body.get(camel, body.get(snake))


def _mapping(body: Mapping[str, object], name: str) -> Mapping[str, object] | None:
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise InvalidRequestError(f"{name} must be an object, found {value!r}")
    return value


def _parents(body: Mapping[str, object]) -> list[str]:
    names = _either(body, "resourceNames", "resource_names") or []
    projects = _either(body, "projectIds", "project_ids") or []
    if not isinstance(names, list) or not isinstance(projects, list):
        raise InvalidRequestError("resourceNames must be a list of names such as projects/PROJECT")
    given = [*map(str, names), *(f"projects/{project}" for project in projects)]
    # A view of a log bucket stands for the whole project here.
    found = [match[0] for name in given if (match := _PARENT.match(name))]
    if not given or len(found) != len(given):
        raise InvalidRequestError(f"resourceNames {given!r} must name at least one projects/PROJECT each")
    return list(dict.fromkeys(found))


def _page_size(given: object) -> int:
    if given in (None, 0):
        return DEFAULT_PAGE
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidRequestError(f"pageSize {given!r} must be a number from 1 to {MAX_PAGE}")
    return min(given, MAX_PAGE)


def _parent(request: Request) -> str:
    return f"{request.url.path.split('/')[2]}/{request.path_params['owner']}"


def _sink_name(request: Request) -> str:
    return f"{_parent(request)}/sinks/{request.path_params['sink']}"


def _flag(request: Request, name: str) -> bool:
    """True in whatever case: the Python client writes `True`."""
    return request.query_params.get(name, "").lower() == "true"


def _shown(sink: Sink) -> Response:
    return JSONResponse(dict(sink.resource))
