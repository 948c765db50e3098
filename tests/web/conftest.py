"""A console on the context `served` of each file, which only reads."""

from collections.abc import Iterator

import pytest
from httpx import Client as Browser

from tests.client.served import Served
from tests.web.consoles import console_of


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Browser]:
    with console_of(served.clients) as browser:
        yield browser
