"""Waiting for a condition, with a deadline."""

import time
from collections.abc import Callable

import pytest

Eventually = Callable[[Callable[[], bool], str], None]


@pytest.fixture
def eventually() -> Eventually:
    def wait(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"not within 60 s: {what}"
            time.sleep(0.02)

    return wait
