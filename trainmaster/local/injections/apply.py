"""Blocking work with an injection around it: publishing, exporting, bringing an event."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from trainmaster.local.injections.active import Injections
from trainmaster.local.injections.calls import Call
from trainmaster.local.injections.injection import Injection, Kind

_Result = TypeVar("_Result")


class InjectedError(Exception):
    """An injection refused what was to be done, or would not say that it was done."""

    def __init__(self, injection: Injection, at: str) -> None:
        super().__init__(f"injection {injection.name!r} ({injection.kind.value}) struck {at}")
        self.injection = injection


def done(injections: Injections, call: Call, do: Callable[[], _Result], *, lost: _Result) -> _Result:
    """What `do` returns, or what an injection makes of it; `lost` is what a drop returns, as if it had been done.

    Raises:
        InjectedError: an error before or after; whatever `do` raises.
    """
    if not (injections.active and injections.concerns(call.at)):
        return do()
    try:
        injection = injections.strike(call)
        return do() if injection is None else _struck(injections, injection, call, do, lost=lost)
    finally:
        injections.passed(call)


def _struck(
    injections: Injections, injection: Injection, call: Call, do: Callable[[], _Result], *, lost: _Result
) -> _Result:
    match injection.kind:
        case Kind.ERROR_BEFORE:
            raise InjectedError(injection, call.at)
        case Kind.ERROR_AFTER:
            do()
            raise InjectedError(injection, call.at)
        case Kind.DROP:
            return lost
        case Kind.DUPLICATE:
            do()
        case Kind.DELAY | Kind.REORDER:
            wait(injections, injection)
        case Kind.KILL | Kind.KILL_AFTER:
            raise AssertionError(f"{call.at} offers no process to kill")
    return do()


def wait(injections: Injections, injection: Injection) -> None:
    """`wait_out` for a thread."""
    if injection.kind is Kind.DELAY:
        time.sleep(injection.seconds)
    if injection.kind is Kind.REORDER:
        with contextlib.suppress(TimeoutError):
            injections.hold(injection).result(injection.seconds)


async def wait_out(injections: Injections, injection: Injection) -> None:
    """Return when the time of a delay is over, or when a reordered call has been overtaken; other kinds wait for nothing."""
    if injection.kind is Kind.DELAY:
        await asyncio.sleep(injection.seconds)
    if injection.kind is Kind.REORDER:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(injections.hold(injection)), injection.seconds)
