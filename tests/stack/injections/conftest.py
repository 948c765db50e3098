"""How tests ask for injections: over HTTP, as a user would."""

import time
from collections.abc import Callable
from typing import Any

import httpx

PATH = "/emulator/v1/injections"


def ask(url: str, *injections: dict[str, object], seed: int = 0) -> None:
    """Put these injections in force."""
    answer = httpx.post(f"{url}{PATH}", json={"seed": seed, "injections": list(injections)}, timeout=60)
    assert answer.status_code == 200, answer.text


def account(url: str, name: str) -> dict[str, Any]:
    """The outcome of one injection."""
    shown = httpx.get(f"{url}{PATH}", timeout=60).json()
    found: dict[str, Any] = next(each for each in shown["injections"] if each["name"] == name)
    return found


def until(condition: Callable[[], bool], what: str, *, deadline_s: float = 120) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.02)
