"""Sends a page's main part again whenever it changes, as server-sent events.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

STREAMS_MAX = 32
"""Pages that are watched at once; a browser opens six connections to one host."""
LONGEST_S = 3600.0
"""A browser reconnects by itself after that."""
BEAT_S = 15.0
"""A comment is sent after so long without a change, so that a closed connection is noticed."""
LATE_S = 5.0
"""After so long without an answer to one look, the browser says that the services do not answer."""
_TYPE = "text/event-stream"

Render = Callable[[], tuple[str, bool, int]]
"""The main part, whether it is final, and its HTTP status; called in a thread."""


def wants_stream(request: Request) -> bool:
    """Whether the browser asks for changes, and not for the page."""
    return request.method == "GET" and _TYPE in request.headers.get("accept", "")


class Streams:
    """The pages that browsers watch."""

    def __init__(
        self, *, pause_s: float, beat_s: float = BEAT_S, longest_s: float = LONGEST_S, late_s: float = LATE_S
    ) -> None:
        """`pause_s`: between two looks at a page; the others as BEAT_S, LONGEST_S and LATE_S."""
        self._late_s = late_s
        self._pause_s, self._beat_s, self._longest_s = pause_s, beat_s, longest_s
        self._open = 0
        self._closed = asyncio.Event()

    def close(self) -> None:
        """End every stream at its next look: the server stops."""
        self._closed.set()

    def answer(self, request: Request, render: Render) -> Response:
        """The stream of a page; 503 where too many are open, after which the browser tries again later."""
        if self._open >= STREAMS_MAX:
            return PlainTextResponse(f"{STREAMS_MAX} pages are watched already.", 503)
        return StreamingResponse(
            self._changes(request, render), media_type=_TYPE, headers={"cache-control": "no-store"}
        )

    async def _changes(self, request: Request, render: Render) -> AsyncIterator[bytes]:
        self._open += 1
        loop = asyncio.get_running_loop()
        began = spoke = loop.time()
        last = b""
        try:
            yield b"retry: 1000\n\n"
            while loop.time() - began < self._longest_s and not (
                self._closed.is_set() or await request.is_disconnected()
            ):
                look = asyncio.ensure_future(run_in_threadpool(render))
                while not (await asyncio.wait([look], timeout=self._late_s))[0]:
                    last = b""  # the page is sent again then, though it may be the same
                    yield b"event: late\ndata: 1\n\n"
                html, is_final, _ = await look
                digest = hashlib.blake2b(html.encode()).digest()
                if digest != last:
                    last, spoke = digest, loop.time()
                    yield b"event: page\ndata: " + json.dumps(html).encode() + b"\n\n"
                elif loop.time() - spoke > self._beat_s:
                    spoke = loop.time()
                    yield b": still here\n\n"
                if is_final:
                    yield b"event: final\ndata: 1\n\n"
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), self._pause_s)
        finally:
            self._open -= 1
