"""Consoles over the contexts of tests, served on a real port."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from trainmaster.client.clients import Clients
from trainmaster.local.http import in_thread, serving
from trainmaster.web.app import make_app
from trainmaster.web.source import Source

TOKEN = "the-token-of-this-session"


@contextmanager
def console_of(clients: Clients, *, writable: bool = False) -> Iterator[httpx.Client]:
    """A browser without JavaScript, on a console that shows the context of `clients`. It follows no redirection."""
    source = Source(lambda: clients.context, writable=writable)
    app = make_app(source, token=TOKEN, is_secret=False)
    try:
        with in_thread(lambda: serving(app)) as url, httpx.Client(base_url=url, timeout=120) as browser:
            yield browser
    finally:
        source.reconnect()


def form(**fields: str) -> dict[str, str]:
    """The fields of a form with the session's token."""
    return {"token": TOKEN, **fields}
