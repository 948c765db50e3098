"""Injections on the last stretch: an event brought to a function, at `functions.NAME`."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from trainmaster.local.events.cloudevent import CloudEvent
from trainmaster.local.events.delivery import Invoke
from trainmaster.local.injections import Call, Injection, Injections, Kind
from trainmaster.local.injections.apply import wait

_BUCKET = "/buckets/"
_OBJECT = "objects/"
_DELIVERED = 200
_NO_ANSWER = 502


def with_injections(
    function_name: str, invoke: Invoke, *, kill: Callable[[], None], injections: Injections
) -> Invoke:
    """`invoke` with the injections around it; `kill` ends the function's process at once.

    A duplicate brings the event twice at the same time. A drop says that the event was taken, and it is lost.
    A killed function has given no answer, so the event comes again.
    """
    at = f"functions.{function_name}"

    def invoked(event: CloudEvent) -> int:
        if not (injections.active and injections.concerns(at)):
            return invoke(event)
        call = Call(at=at, subjects=_subjects(event))
        injection = injections.strike(call)
        try:
            return invoke(event) if injection is None else _struck(injection, event)
        finally:
            injections.passed(call)

    def _struck(injection: Injection, event: CloudEvent) -> int:
        match injection.kind:
            case Kind.KILL:
                return _killed(lambda: invoke(event), kill, after_s=injection.seconds)
            case Kind.KILL_AFTER:
                invoke(event)
                kill()
                return _NO_ANSWER
            case Kind.DUPLICATE:
                return _twice(lambda: invoke(event))
            case Kind.ERROR_BEFORE | Kind.ERROR_AFTER:
                if injection.kind is Kind.ERROR_AFTER:
                    invoke(event)
                return injection.code
            case Kind.DROP:
                return _DELIVERED
            case Kind.DELAY | Kind.REORDER:
                wait(injections, injection)
                return invoke(event)

    return invoked


def _killed(invoke: Callable[[], int], kill: Callable[[], None], *, after_s: float) -> int:
    """The process is killed `after_s` seconds after it was given the event, or when it answers before."""
    answered = threading.Event()

    def invoked() -> None:
        try:
            invoke()
        finally:
            answered.set()

    with ThreadPoolExecutor(max_workers=1) as other:
        given = other.submit(invoked)
        answered.wait(after_s)
        kill()
        given.result()
    return _NO_ANSWER


def _twice(invoke: Callable[[], int]) -> int:
    """The worse of two answers to the same event, brought at once."""
    with ThreadPoolExecutor(max_workers=1) as other:
        first = other.submit(invoke)
        second = invoke()
        return max(first.result(), second)


def _subjects(event: CloudEvent) -> tuple[str, ...]:
    """`BUCKET/NAME` where the event is an object's, the event's id, and its source."""
    source, event_id = event.headers.get("ce-source", ""), event.headers.get("ce-id", "")
    subject = unquote(event.headers.get("ce-subject", ""))
    _, is_bucket, bucket = source.partition(_BUCKET)
    if is_bucket and subject.startswith(_OBJECT):
        return (f"{bucket}/{subject.removeprefix(_OBJECT)}", event_id, source)
    return (event_id, source)
