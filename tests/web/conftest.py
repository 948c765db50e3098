"""A console on the context `served` of each file, which only reads unless the file sets WRITABLE."""

from collections.abc import Iterator

import pytest
from httpx import Client as Browser

from tests.client.served import Served
from tests.web.consoles import console_of


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest, served: Served) -> Iterator[Browser]:
    writable = getattr(request.module, "WRITABLE", False)
    with console_of(served.clients, writable=writable) as browser:
        yield browser
