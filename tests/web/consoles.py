"""Consoles over the contexts of tests, served on a real port."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from trainmaster.client.clients import Clients
from trainmaster.client.context import Context
from trainmaster.web.app import make_app
from trainmaster.web.source import ConsoleSource
from trainstack.http import in_thread, serving

TOKEN = "the-token-of-this-session"


@contextmanager
def console_of(clients: Clients, *, writable: bool = False) -> Iterator[httpx.Client]:
    """As `console_over`, on the context of `clients`."""
    with console_over(lambda: clients.context, writable=writable) as browser:
        yield browser


@contextmanager
def console_over(choose: Callable[[], Context], *, writable: bool = False) -> Iterator[httpx.Client]:
    """A browser without JavaScript, on a console that shows what `choose` returns. It follows no redirection."""
    with browser_on(ConsoleSource(choose, writable=writable)) as browser:
        yield browser


@contextmanager
def browser_on(source: ConsoleSource) -> Iterator[httpx.Client]:
    """As `console_over`, on a source of the test's own."""
    app = make_app(source, token=TOKEN, is_secret=False)
    try:
        with in_thread(lambda: serving(app)) as url, httpx.Client(base_url=url, timeout=120) as browser:
            yield browser
    finally:
        source.reconnect()


def form(**fields: str) -> dict[str, str]:
    """The fields of a form with the session's token."""
    return {"token": TOKEN, **fields}
