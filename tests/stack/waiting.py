"""Waiting for what other threads, processes and servers do."""

import asyncio
import functools
import socket
import time
from collections.abc import Awaitable, Callable
from typing import ParamSpec

P = ParamSpec("P")


def wait_until(
    condition: Callable[[], object], what: str = "what the test waits for", *, within_s: float = 60
) -> None:
    """Return when the condition holds; fail after the time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        time.sleep(0.01)


def in_time(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """A test that is a coroutine, run to its end within a minute."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def work() -> None:
            async with asyncio.timeout(60):
                await test(*args, **kwargs)

        asyncio.run(work())

    return run


def is_closed(client: socket.socket) -> bool:
    """Whether the server closes the connection, waiting until it does."""
    client.settimeout(60)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
