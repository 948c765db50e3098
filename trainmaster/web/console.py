"""One console: what it reads, who may use it, and what surrounds its pages."""

from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import Request

from trainmaster.web.live import Streams
from trainmaster.web.people import person_of, teams_of
from trainmaster.web.rendering import Frame
from trainmaster.web.source import ConsoleSource

LOCAL_POLL_S, CLOUD_POLL_S = 0.7, 10.0
"""Between two looks at an open page: of the server, which sends what changed, and of the browser in the cloud."""


@dataclass(frozen=True, kw_only=True)
class WebConsole:
    """One console, and the token of its session. `is_secret`: also reading needs it, as the data is elsewhere."""

    source: ConsoleSource
    token: str
    is_secret: bool
    streams: Streams

    def frame(self, request: Request) -> Frame:
        """What surrounds a page. It never fails: without a stack it says so."""
        person = person_of(request)
        where, is_local, writable = "no stack", True, self.source.writable and person is None
        with suppress(Exception):
            where, is_local = self.source.context.title, self.source.is_local
            writable = self.source.writable if person is None else bool(teams_of(self.source, person))
        return Frame(
            where=where,
            writable=writable,
            token=self.token if writable else "",
            poll_s=0.0 if is_local else CLOUD_POLL_S,
            path=request.url.path,
            person=person.email if person else "",
        )
