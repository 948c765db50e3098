"""The helpers that every REST surface of the stack shares."""

import asyncio
import gc
import select
import socket
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.stack.waiting import in_time, is_closed
from trainstack.http import Server, in_thread, serving

WHOLE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("hello")(scope, receive, send)


def test_an_application_answers_on_a_picked_port_until_the_block_ends() -> None:
    with in_thread(lambda: serving(hello)) as url:
        assert httpx.get(url, timeout=60).text == "hello"
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, timeout=60)


def test_a_taken_port_is_an_error() -> None:
    with (
        in_thread(lambda: serving(hello)) as url,
        pytest.raises(OSError, match="in use"),
        in_thread(lambda: serving(hello, port=int(url.rpartition(":")[2]))),
    ):
        pass


@in_time
async def test_stopping_a_server_that_never_started_is_harmless() -> None:
    server = Server(hello)
    await server.stop()
    await server.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_line", "pause_s"), [(b"", 0), (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 0.1)]
)
def test_a_stop_closes_every_connection(request_line: bytes, pause_s: float) -> None:
    """One that was accepted only just now, and one whose answer never comes."""

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await asyncio.Event().wait()

    async def stop() -> None:
        server = Server(never)
        await server.start()
        client.connect(("127.0.0.1", server.port))
        client.sendall(request_line)
        if pause_s:
            await asyncio.sleep(pause_s)
        await server.stop()

    with socket.socket() as client, warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(stop())
        gc.collect()
        client.settimeout(5)
        assert client.recv(1) == b""
    assert not leaks


@pytest.mark.parametrize("turns", range(4))
def test_a_connection_that_comes_while_a_server_stops_is_closed(turns: int) -> None:
    """As many turns of the event loop after the stop has begun."""

    async def connect_while_it_stops() -> socket.socket:
        server = Server(hello)
        await server.start()
        stopping = asyncio.create_task(server.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        client = socket.create_connection(("127.0.0.1", server.port))
        await stopping
        return client

    with asyncio.run(connect_while_it_stops()) as client, warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
        client.settimeout(5)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    assert not leaks


@asynccontextmanager
async def impatient(
    app: ASGIApp = hello, *, most_waiting: int = 500, head_within_s: float = 60.0
) -> AsyncIterator[tuple[str, int]]:
    """Where a server with these bounds answers."""
    server = Server(app, most_waiting=most_waiting, head_within_s=head_within_s)
    await server.start()
    try:
        yield "127.0.0.1", server.port
    finally:
        await server.stop()


def ask(client: socket.socket, *parts: bytes) -> bytes:
    """The answer's body to a request in these parts; its length is 5."""
    for part in parts:
        client.sendall(part)
    received = b""
    while not received.endswith(b"hello"):
        received += (more := client.recv(4096))
        assert more, received
    return received[-5:]


def test_half_sent_requests_make_room_for_newer_ones_before_idle_connections_do() -> None:
    with ExitStack() as held, in_thread(lambda: impatient(most_waiting=20)) as address:
        idle = held.enter_context(socket.create_connection(address, 60))
        assert ask(idle, WHOLE) == b"hello"
        slow = [held.enter_context(socket.create_connection(address, 60)) for _ in range(60)]
        for each in slow:
            with suppress(ConnectionError):
                each.sendall(WHOLE[:10])
        assert all(is_closed(each) for each in slow[:40])
        assert ask(idle, WHOLE) == b"hello"
        assert ask(slow[-1], WHOLE[10:]) == b"hello"
        with socket.create_connection(address, 60) as other:
            assert ask(other, WHOLE) == b"hello"


@pytest.mark.parametrize("begun", [b"", WHOLE[:10]])
def test_a_request_whose_head_does_not_arrive_in_time_is_closed(begun: bytes) -> None:
    with in_thread(lambda: impatient(head_within_s=0.1)) as address:
        for asked in ((), (WHOLE,)) if begun else ((),):
            with socket.create_connection(address, 60) as client:
                for each in asked:
                    assert ask(client, each) == b"hello"
                client.sendall(begun)
                assert is_closed(client)


@pytest.mark.slow
def test_slow_bodies_late_answers_and_idle_connections_outlive_the_deadline_of_a_head() -> None:
    within_s, has_head = 0.2, threading.Event()

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        has_head.set()
        while (await receive()).get("more_body"):
            continue
        await asyncio.sleep(2 * within_s)
        await hello(scope, receive, send)

    with (
        in_thread(lambda: impatient(late, most_waiting=2, head_within_s=within_s)) as address,
        ExitStack() as held,
    ):
        client = held.enter_context(socket.create_connection(address, 60))
        client.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\n")
        assert has_head.wait(60)
        for _ in range(10):  # as many as make a connection that waits be closed
            held.enter_context(socket.create_connection(address, 60))
        for part in b"abc":
            assert not select.select([client], [], [], 2 * within_s)[0]
            client.sendall(bytes([part]))
        assert ask(client) == b"hello"
        assert not select.select([client], [], [], 2 * within_s)[0]
        assert ask(client, WHOLE) == b"hello"


def test_what_fails_inside_the_block_is_raised_and_the_server_is_gone() -> None:
    urls: list[str] = []

    def fail() -> None:
        with in_thread(lambda: serving(hello)) as url:
            urls.append(url)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    with pytest.raises(httpx.ConnectError):
        httpx.get(urls[0], timeout=60)
