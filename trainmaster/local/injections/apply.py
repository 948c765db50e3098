"""What happens to a call that an injection strikes: the same at every boundary, which supplies how to refuse or lose a call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trainmaster.local.injections.active import Injections
from trainmaster.local.injections.injection import Call, Injection, Kind

_Answer = TypeVar("_Answer")
Ending = Callable[[Injection], Awaitable[_Answer]]


async def apply_injections(
    injections: Injections,
    call: Call,
    do: Callable[[], Awaitable[_Answer]],
    *,
    refuse: Ending[_Answer],
    lose: Ending[_Answer],
    twice: Callable[[], Awaitable[_Answer]] | None = None,
) -> _Answer:
    """The response of `do`, or what an injection turns it into.

    Args:
        injections: the active ones.
        call: the call that they match.
        do: performs the call.
        refuse: responds with an error, before or after the call.
        lose: responds for a call that is dropped, or whose function the injection kills.
        twice: performs a duplicated call; None performs one after the other.

    Raises:
        Exception: what these raise.
    """
    if not (injections.active and injections.concerns(call.at)):
        return await do()
    injection = injections.strike(call)
    if injection is None:
        return await do()
    match injection.kind:
        case Kind.DUPLICATE if twice:
            return await twice()
        case Kind.ERROR_AFTER | Kind.KILL_AFTER | Kind.DUPLICATE:
            await do()
        case Kind.DELAY:
            await asyncio.sleep(injection.seconds)
    match injection.kind:
        case Kind.ERROR_BEFORE | Kind.ERROR_AFTER:
            return await refuse(injection)
        case Kind.DROP | Kind.KILL | Kind.KILL_AFTER:
            return await lose(injection)
    return await do()


class InjectedError(Exception):
    """An injection refused to forward something, or reported an error after it was forwarded."""


async def send_on(injections: Injections, call: Call, send: Callable[[], object]) -> None:
    """Call `send` in a thread; what an injection drops counts as sent.

    Raises:
        InjectedError: an error before or after.
        Exception: what `send` raises.
    """

    async def do() -> None:
        await asyncio.to_thread(send)

    async def refuse(injection: Injection) -> None:
        raise InjectedError(f"injection {injection.name!r} ({injection.kind.value}) struck {call.at}")

    async def lose(_injection: Injection) -> None:
        pass

    await apply_injections(injections, call, do, refuse=refuse, lose=lose)
