"""The console's web application: every page, document and action of every subject, behind the checks of `security`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from trainmaster.client.errors import ClientRefused
from trainmaster.web.console import LOCAL_POLL_S, WebConsole
from trainmaster.web.faults import ConsoleFault, fault_of
from trainmaster.web.forms import form_of
from trainmaster.web.live import Streams, wants_stream
from trainmaster.web.openapi import description
from trainmaster.web.pages import SUBJECTS
from trainmaster.web.people import NotTheirs, person_of, teams_of
from trainmaster.web.rendering import main_part, whole_page
from trainmaster.web.security import Guard, has_token
from trainmaster.web.source import ConsoleSource
from trainmaster.web.subject import (
    ApiRoute,
    Ask,
    ConsoleAction,
    ConsolePage,
    ConsoleSubject,
    FileRoute,
    PageRoute,
    Proposal,
)

API = "/api/v1"
_FAILED = (
    "The console could not answer. Its output says why: that of `trainmaster web`, or DIR/logs/console.log."
)
"""After an error of the console's own; the server logs its traceback."""


def make_app(
    source: ConsoleSource, *, token: str, is_secret: bool, streams: Streams | None = None
) -> ASGIApp:
    """The application. `token` is the session's; `streams` is closed by the server that stops."""
    streams = streams or Streams(pause_s=LOCAL_POLL_S)
    console = WebConsole(source=source, token=token, is_secret=is_secret, streams=streams)
    routes: list[Route | Mount] = [
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        Route(API, _document(lambda: _index(SUBJECTS)), methods=["GET"]),
        Route(f"{API}/", _document(lambda: _index(SUBJECTS)), methods=["GET"]),
        Route(f"{API}/openapi.json", _document(lambda: description(SUBJECTS)), methods=["GET"]),
    ]
    for subject in SUBJECTS:
        for action in subject.actions:  # before the pages, whose paths may hold slashes
            routes.append(Route(action.path, _proposal(console, action), methods=["GET"]))
            routes.append(Route(action.path, _action_route(console, action, is_api=False), methods=["POST"]))
            routes.append(
                Route(f"{API}{action.path}", _action_route(console, action, is_api=True), methods=["POST"])
            )
        routes += [Route(page.path, _page(console, page), methods=_methods(page)) for page in subject.pages]
        routes += [
            Route(f"{API}{each.path}", _api(console, each), methods=_methods(each)) for each in subject.api
        ]
        routes += [Route(file.path, _file(console, file), methods=["GET"]) for file in subject.files]
    starlette = Starlette(
        routes=routes,
        exception_handlers={
            404: _answer_with(console, 404, "No such page", "Nothing is at {path}."),
            500: _answer_with(console, 500, "Internal error", _FAILED),
        },
    )
    return Guard(starlette, console)


def _index(subjects: Sequence[ConsoleSubject]) -> dict[str, Any]:
    """The paths below /api/v1, each with its methods, and where they are described."""
    paths = description(subjects)["paths"]
    return {
        "description": f"{API}/openapi.json",
        "paths": {f"{API}{path}": [method.upper() for method in found] for path, found in paths.items()},
    }


def _ask(console: WebConsole, request: Request, form: Mapping[str, str] | None = None) -> Ask:
    return Ask(
        source=console.source,
        now=datetime.now(UTC),
        path=dict(request.path_params),
        query=request.query_params,
        form=form or {},
        person=person_of(request),
    )


def _methods(route: PageRoute | ApiRoute) -> list[str]:
    return ["POST"] if route.takes_form else ["GET"]


def _page(console: WebConsole, route: PageRoute) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            form = await form_of(request) if route.takes_form else {}
        except ClientRefused as refused:
            return _fault_answer(console, request, _known_fault(console, refused))

        def render() -> tuple[str, bool, int]:
            page, status = _page_or_fault(console, lambda: route.show(_ask(console, request, form)))
            frame = console.frame(request)
            part = main_part if wants_stream(request) else whole_page
            return part(page, frame), page.is_final, status

        if wants_stream(request) and not (await run_in_threadpool(console.frame, request)).poll_s:
            return console.streams.answer(request, render)
        html, _, status = await run_in_threadpool(render)
        return HTMLResponse(html, status)

    return answer


def _page_or_fault(console: WebConsole, show: Callable[[], ConsolePage]) -> tuple[ConsolePage, int]:
    """The page and its HTTP status; a fault has a page as well."""
    try:
        page = show()
    except Exception as error:
        fault = _known_fault(console, error)
        return fault_page(fault), fault.status
    return page, page.status


def _known_fault(console: WebConsole, error: Exception) -> ConsoleFault:
    """The fault that the error stands for; after a lost connection, the context is chosen again. Raises any other error."""
    fault = fault_of(error)
    if fault is None:
        raise error
    if fault.is_lost:
        console.source.reconnect()
    return fault


def fault_page(fault: ConsoleFault) -> ConsolePage:
    """The page that says what went wrong."""
    return ConsolePage(
        title=fault.title,
        template="fault.html",
        values={"fault": fault},
        command=fault.command,
        is_fault=True,
        is_lost=fault.is_lost,
    )


def _fault_answer(
    console: WebConsole, request: Request, fault: ConsoleFault, *, is_api: bool = False
) -> Response:
    """The fault's whole page, which no look changes any more, or its document."""
    if is_api:
        return JSONResponse({"error": {"status": fault.status, "message": fault.message}}, fault.status)
    page = replace(fault_page(fault), is_final=True)
    return HTMLResponse(whole_page(page, console.frame(request)), fault.status)


def _file(console: WebConsole, route: FileRoute) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            file = await run_in_threadpool(lambda: route.make(_ask(console, request)))
        except Exception as error:
            return _fault_answer(console, request, _known_fault(console, error), is_api=True)
        disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        return Response(
            file.content, media_type=file.media_type, headers={"content-disposition": disposition}
        )

    return answer


def _api(console: WebConsole, route: ApiRoute) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        def read(form: Mapping[str, str]) -> Mapping[str, Any] | Sequence[Any]:
            ask = _ask(console, request, form)
            ask.refuse_unknown([] if route.takes_form else [parameter.name for parameter in route.parameters])
            return route.read(ask)

        try:
            form = await form_of(request) if route.takes_form else {}
            return JSONResponse(await run_in_threadpool(read, form))
        except Exception as error:
            return _fault_answer(console, request, _known_fault(console, error), is_api=True)

    return answer


def _proposal(console: WebConsole, action: ConsoleAction) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        def render() -> tuple[str, int]:
            page, status = _page_or_fault(
                console, lambda: _proposal_page(action.propose(_ask(console, request)), request)
            )
            return whole_page(replace(page, is_final=True), console.frame(request)), status

        return HTMLResponse(*await run_in_threadpool(render))

    return answer


def _proposal_page(proposal: Proposal, request: Request) -> ConsolePage:
    values = {"proposal": proposal, "target": request.url.path}
    return ConsolePage(
        title=proposal.title, template="proposal.html", values=values, command=proposal.command, is_final=True
    )


def _action_route(console: WebConsole, action: ConsoleAction, *, is_api: bool) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            form = await form_of(request)
            await run_in_threadpool(_refuse_strangers, console, request, form, is_api=is_api)
            outcome = await run_in_threadpool(lambda: action.perform(_ask(console, request, form)))
        except Exception as error:
            fault = _known_fault(console, error)
            if isinstance(error, OldForm):
                fault = replace(fault, back=request.url.path)
            return _fault_answer(console, request, fault, is_api=is_api)
        console.source.forget()
        if is_api:
            return JSONResponse({"message": outcome.message, "page": outcome.go_to, **outcome.document})
        return RedirectResponse(outcome.go_to, status_code=303)

    return answer


def _refuse_strangers(
    console: WebConsole, request: Request, form: Mapping[str, str], *, is_api: bool
) -> None:
    """Checks that the console may change something, for this request.

    Raises:
        NotAllowed, NotTheirs: the console only reads, for everyone or for this person.
        OldForm, NoToken: the request, of a page or of a program, lacks the session's token.
    """
    if (person := person_of(request)) is not None:
        if not teams_of(console.source, person):
            raise NotTheirs(
                f"{person.email} may only read here: the policy's console.people does not name them."
            )
    elif not console.source.writable:
        raise NotAllowed("This console only reads. To change things in it: trainmaster web --write")
    if has_token(console.token, request.headers, form):
        return
    if is_api:
        raise NoToken(
            "The request lacks the token of this session. Nothing was changed. A program sends it as"
            " `Authorization: Bearer TOKEN`; choose the token before the console starts: TRAINMASTER_CONSOLE_TOKEN"
        )
    raise OldForm(
        "The request lacks the token of this session: its form is from before the console was started again."
        " Nothing was changed. Open the form again, and send it from there."
    )


class NotAllowed(ClientRefused):
    """A change in a console that only reads."""


class OldForm(ClientRefused):
    """A form without the session's token."""


class NoToken(ClientRefused):
    """A request of a program without the session's token."""


def _document(make: Callable[[], Mapping[str, Any]]) -> Callable[[Request], Any]:
    async def answer(_request: Request) -> Response:
        return JSONResponse(make())

    return answer


def _answer_with(
    console: WebConsole, status: int, title: str, message: str
) -> Callable[[Request, Exception], Any]:
    """The answer where no page has one; `{path}` in the message is that of the request."""

    async def answer(request: Request, _error: Exception) -> Response:
        path = request.url.path
        text = message.replace("{path}", path)
        fault = ConsoleFault(status=status, title=title, message=text, command="trainmaster --help")
        return _fault_answer(console, request, fault, is_api=path.startswith(API))

    return answer
