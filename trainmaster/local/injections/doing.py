"""Blocking work with a fault around it: publishing, exporting, bringing an event."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from trainmaster.local.injections.fault import Fault, Kind
from trainmaster.local.injections.harness import Faults
from trainmaster.local.injections.point import Call

_Result = TypeVar("_Result")


class StruckError(Exception):
    """A fault refused what was to be done, or would not say that it was done."""

    def __init__(self, fault: Fault, at: str) -> None:
        super().__init__(f"fault {fault.name!r} ({fault.kind.value}) struck {at}")
        self.fault = fault


def done(faults: Faults, call: Call, do: Callable[[], _Result], *, lost: _Result) -> _Result:
    """What `do` returns, or what a fault makes of it; `lost` is what a drop returns, as if it had been done.

    Raises:
        StruckError: an error before or after; whatever `do` raises.
    """
    if not (faults.active and faults.concerns(call.at)):
        return do()
    try:
        fault = faults.strike(call)
        return do() if fault is None else _struck(faults, fault, call, do, lost=lost)
    finally:
        faults.passed(call)


def _struck(faults: Faults, fault: Fault, call: Call, do: Callable[[], _Result], *, lost: _Result) -> _Result:
    match fault.kind:
        case Kind.ERROR_BEFORE:
            raise StruckError(fault, call.at)
        case Kind.ERROR_AFTER:
            do()
            raise StruckError(fault, call.at)
        case Kind.DROP:
            return lost
        case Kind.DUPLICATE:
            do()
        case Kind.DELAY | Kind.REORDER:
            wait(faults, fault)
        case Kind.KILL | Kind.KILL_AFTER:
            raise AssertionError(f"{call.at} offers no process to kill")
    return do()


def wait(faults: Faults, fault: Fault) -> None:
    """`wait_out` for a thread."""
    if fault.kind is Kind.DELAY:
        time.sleep(fault.seconds)
    if fault.kind is Kind.REORDER:
        with contextlib.suppress(TimeoutError):
            faults.hold(fault).result(fault.seconds)


async def wait_out(faults: Faults, fault: Fault) -> None:
    """Return when the time of a delay is over, or when a reordered call has been overtaken; other kinds wait for nothing."""
    if fault.kind is Kind.DELAY:
        await asyncio.sleep(fault.seconds)
    if fault.kind is Kind.REORDER:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(faults.hold(fault)), fault.seconds)
