"""Injections into the last hop: the delivery of an event to a function, at `functions.NAME`."""

import concurrent.futures
import time
from collections.abc import Callable
from urllib.parse import unquote

from trainstack.events.cloudevent import CloudEvent
from trainstack.events.delivery import Invoke
from trainstack.injections import InjectionKind, Injections

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

    def invoke_injected(event: CloudEvent) -> int:
        injection = injections.strike(at, _subjects(event)) if injections.concerns(at) else None
        if injection is None:
            return invoke(event)
        if injection.kind is InjectionKind.DELAY:
            time.sleep(injection.seconds)
        if injection.kind in (InjectionKind.ERROR_BEFORE, InjectionKind.DROP):
            return injection.code if injection.kind is InjectionKind.ERROR_BEFORE else _DELIVERED
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [
                pool.submit(invoke, event) for _ in range(1 + (injection.kind is InjectionKind.DUPLICATE))
            ]
            if injection.kind is InjectionKind.KILL:
                concurrent.futures.wait(answers, timeout=injection.seconds)
                kill()
            status = max(answer.result() for answer in answers)  # the worse of two
        if injection.kind is InjectionKind.KILL_AFTER:
            kill()
        if injection.kind in (InjectionKind.KILL, InjectionKind.KILL_AFTER):
            return _NO_ANSWER
        return injection.code if injection.kind is InjectionKind.ERROR_AFTER else status

    return invoke_injected


def _subjects(event: CloudEvent) -> tuple[str, ...]:
    """`BUCKET/NAME` if the event is about an object, then the event's id and its source."""
    source, event_id = event.headers.get("ce-source", ""), event.headers.get("ce-id", "")
    subject = unquote(event.headers.get("ce-subject", ""))
    _, is_bucket, bucket = source.partition(_BUCKET)
    if is_bucket and subject.startswith(_OBJECT):
        return (f"{bucket}/{subject.removeprefix(_OBJECT)}", event_id, source)
    return (event_id, source)
