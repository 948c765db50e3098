"""A watched page is sent when it changes, and only then, until it is final, the browser leaves, or the server stops."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from trainmaster.web.live import STREAMS_MAX, Streams, wants_stream

DEADLINE_S = 60


def request(*, method: str = "GET", disconnects_after: int = 10**9) -> Request:
    """A browser's request for a stream; the browser leaves after that number of looks."""
    looks = iter(range(disconnects_after))

    async def receive() -> Message:
        if next(looks, None) is None:
            return {"type": "http.disconnect"}
        await asyncio.sleep(DEADLINE_S)  # cancelled at once by the look
        raise AssertionError

    headers = [(b"accept", b"text/event-stream")]
    return Request({"type": "http", "method": method, "headers": headers}, receive)


def pages(*shown: str, final: bool = True) -> Callable[[], tuple[str, bool, int]]:
    """Renders these one after the other; the last one is final, or stays."""
    rest: Iterator[str] = iter(shown[:-1])

    def render() -> tuple[str, bool, int]:
        html = next(rest, None)
        return (shown[-1], final, 200) if html is None else (html, False, 200)

    return render


def parts(streams: Streams, answer: Response) -> AsyncIterator[str]:
    assert isinstance(answer, StreamingResponse)
    assert answer.media_type == "text/event-stream"

    async def texts() -> AsyncIterator[str]:
        async for part in answer.body_iterator:
            assert isinstance(part, bytes)
            yield part.decode()

    return texts()


def received(streams: Streams, asked: Request, render: Callable[[], tuple[str, bool, int]]) -> list[str]:
    """All that the stream sends until it ends."""

    async def collect() -> list[str]:
        async with asyncio.timeout(DEADLINE_S):
            return [part async for part in parts(streams, streams.answer(asked, render))]

    return asyncio.run(collect())


def sent(html: str) -> str:
    return f"event: page\ndata: {json.dumps(html)}\n\n"


def test_a_page_is_sent_when_it_changes_and_the_stream_ends_when_it_is_final() -> None:
    found = received(Streams(pause_s=0), request(), pages("a", "a", "b", "b", "b", "a", "c\n\r\u2028"))
    end = "event: final\ndata: 1\n\n"
    assert found == ["retry: 1000\n\n", sent("a"), sent("b"), sent("a"), sent("c\n\r\u2028"), end]
    assert all(part.count("\n") in {2, 3} for part in found)  # no line of a page ends an event


def test_a_page_that_stays_the_same_is_sent_once_with_signs_of_life() -> None:
    found = received(Streams(pause_s=0, beat_s=-1), request(disconnects_after=9), pages("a", final=False))
    assert found[:2] == ["retry: 1000\n\n", sent("a")]
    assert set(found[2:]) == {": still here\n\n"}
    assert (
        found
        == received(
            Streams(pause_s=0, beat_s=DEADLINE_S), request(disconnects_after=9), pages("a", final=False)
        )
        + found[2:]
    )


def test_a_look_without_an_answer_is_reported_and_its_page_is_sent_again() -> None:
    answered = threading.Event()
    looks: Iterator[Callable[[], bool]] = iter([lambda: True, lambda: answered.wait(DEADLINE_S)])

    def render() -> tuple[str, bool, int]:
        look = next(looks)
        return "a", look() and answered.is_set(), 200

    async def run() -> list[str]:
        found = []
        streams = Streams(pause_s=0, late_s=0.01)
        async for part in parts(streams, streams.answer(request(), render)):
            found.append(part)
            if part.startswith("event: late") and sent("a") in found:
                answered.set()
        return found

    found = asyncio.run(asyncio.wait_for(run(), DEADLINE_S))
    late = [number for number, part in enumerate(found) if part.startswith("event: late")]
    assert late
    assert sent("a") in found[late[-1] :]


def test_a_stream_ends_after_its_longest_time() -> None:
    found = received(Streams(pause_s=0, longest_s=0), request(), pages("a", final=False))
    assert found == ["retry: 1000\n\n"]


def test_no_page_is_rendered_for_a_browser_that_has_left() -> None:
    def render() -> tuple[str, bool, int]:
        raise AssertionError

    assert received(Streams(pause_s=0), request(disconnects_after=0), render) == ["retry: 1000\n\n"]


def test_a_server_that_stops_ends_every_stream() -> None:
    streams = Streams(pause_s=DEADLINE_S)

    async def run() -> list[str]:
        texts = parts(streams, streams.answer(request(), pages("a", final=False)))
        began = [await anext(texts), await anext(texts)]
        streams.close()
        return began + [part async for part in texts]

    assert asyncio.run(asyncio.wait_for(run(), DEADLINE_S / 2)) == ["retry: 1000\n\n", sent("a")]


def test_a_number_of_pages_may_be_watched_at_once_and_each_end_makes_room() -> None:
    streams = Streams(pause_s=0)

    async def run() -> None:
        watched = [parts(streams, streams.answer(request(), pages("a", "b"))) for _ in range(STREAMS_MAX)]
        for each in watched:
            await anext(each)
        assert streams.answer(request(), pages("a")).status_code == 503
        assert [part async for part in watched[0]][-1].startswith("event: final")
        assert streams.answer(request(), pages("a")).status_code == 200
        for each in watched[1:]:
            assert [part async for part in each][-1].startswith("event: final")

    asyncio.run(run())


def test_only_a_browser_that_reads_events_gets_a_stream() -> None:
    assert wants_stream(request())
    assert not wants_stream(request(method="HEAD"))
    assert not wants_stream(
        Request({"type": "http", "method": "GET", "headers": [(b"accept", b"text/html")]})
    )
