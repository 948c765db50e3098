"""Injections into the last hop: the delivery of an event to a function, at `functions.NAME`."""

import asyncio
from collections.abc import Callable
from urllib.parse import unquote

from trainmaster.local.events.cloudevent import CloudEvent
from trainmaster.local.events.delivery import Invoke
from trainmaster.local.injections import Call, Injection, Injections, Kind
from trainmaster.local.injections.apply import apply_injections
from trainmaster.local.injections.injection import FUNCTION_KINDS

_BUCKET = "/buckets/"
_OBJECT = "objects/"
_DELIVERED = 200
_NO_ANSWER = 502


def with_injections(
    function_name: str, invoke: Invoke, *, kill: Callable[[], None], injections: Injections
) -> Invoke:
    """`invoke` with the injections around it; `kill` ends the function's process at once.

    A duplicate delivers the event twice at the same time. A drop acknowledges the event and loses it. A kill
    ends the function `seconds` after it received the event, or when it answers, if that is sooner. Its
    response is lost, so the event is redelivered.
    """
    at = f"functions.{function_name}"

    def invoked(event: CloudEvent) -> int:
        if not (injections.active and injections.concerns(at)):
            return invoke(event)

        async def do() -> int:
            return await asyncio.to_thread(invoke, event)

        async def twice() -> int:
            return max(await asyncio.gather(do(), do()))  # the worse of the two answers

        async def refuse(injection: Injection) -> int:
            return injection.code

        async def lose(injection: Injection) -> int:
            if injection.kind is Kind.DROP:
                return _DELIVERED
            if injection.kind is Kind.KILL:
                given = asyncio.create_task(do())
                await asyncio.wait({given}, timeout=injection.seconds)
                kill()
                await given
            else:
                kill()
            return _NO_ANSWER

        call = Call(at=at, subjects=_subjects(event), kinds=FUNCTION_KINDS)
        return asyncio.run(apply_injections(injections, call, do, refuse=refuse, lose=lose, twice=twice))

    return invoked


def _subjects(event: CloudEvent) -> tuple[str, ...]:
    """`BUCKET/NAME` if the event is about an object, then the event's id and its source."""
    source, event_id = event.headers.get("ce-source", ""), event.headers.get("ce-id", "")
    subject = unquote(event.headers.get("ce-subject", ""))
    _, is_bucket, bucket = source.partition(_BUCKET)
    if is_bucket and subject.startswith(_OBJECT):
        return (f"{bucket}/{subject.removeprefix(_OBJECT)}", event_id, source)
    return (event_id, source)
