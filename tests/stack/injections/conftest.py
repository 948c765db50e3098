"""Injections are put in force over HTTP, as a user would do it."""

from typing import Any

import httpx

PATH = "/emulator/v1/injections"


def ask(url: str, *injections: dict[str, object], seed: int = 0) -> None:
    """Put these injections in force."""
    answer = httpx.post(f"{url}{PATH}", json={"seed": seed, "injections": list(injections)}, timeout=60)
    assert answer.status_code == 200, answer.text


def account(url: str, name: str) -> dict[str, Any]:
    """The outcome of one injection."""
    return account_in(httpx.get(f"{url}{PATH}", timeout=60).json(), name)


def account_in(shown: Any, name: str) -> dict[str, Any]:
    """The outcome of one of the injections that are shown."""
    found: dict[str, Any] = next(each for each in shown["injections"] if each["name"] == name)
    return found
