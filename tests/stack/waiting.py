"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], what: str = "what the test waits for", *, within_s: float = 60
) -> None:
    """Return when the condition holds; fail after the time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        time.sleep(0.01)
