"""Repeats a read while a service restarts."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from trainmaster.client.context import Context, context_of_stack
from trainmaster.client.errors import TimedOut
from trainstack.find import NoStack, environment_on, was_stopped

GIVE_UP_S, LOCAL_GIVE_UP_S = 120.0, 30.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
POLL_S, LOCAL_POLL_S = 5.0, 0.4
"""Cloud Logging allows 60 reads a minute and project: https://cloud.google.com/logging/quotas, read 2026-11."""
T = TypeVar("T")


def look_until(is_over: Callable[[], bool], context: Context, look: Callable[[], T]) -> Iterator[T]:
    """What each look finds, also if nothing is new. Raises as `survive_restarts`, and what `look` does."""
    while True:
        yield survive_restarts(context, look)
        if is_over():
            return
        time.sleep(POLL_S if context.state is None else LOCAL_POLL_S)


def survive_restarts(context: Context, read: Callable[[], T], *, deadline: float | None = None) -> T:
    """What `read` returns, repeated with growing pauses while no service answers or it answers with a passing error.

    `read` must be safe to repeat, and end soon where nothing answers. `deadline` is a time of `time.monotonic`.

    Raises:
        TimedOut: no service answered before the deadline.
        NoStack: the local stack was stopped, or does not answer after LOCAL_GIVE_UP_S seconds, for example because it was
            killed, or because it was started again at other addresses.
        google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: another error, or no service
            answered within GIVE_UP_S seconds.
    """
    give_up_s = GIVE_UP_S if context.state is None else LOCAL_GIVE_UP_S
    give_up, pause_s = time.monotonic() + give_up_s, FIRST_PAUSE_S
    while True:
        try:
            return read()
        except _passing_errors():
            if context.state is not None and was_stopped(context.state):
                environment_on(context.state)  # raises NoStack, unless a stack has become ready by now
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut(f"No service of {context.title} answered in time.") from None
            if time.monotonic() > give_up:
                check_stack(context)
                raise
        time.sleep(pause_s if deadline is None else max(0, min(pause_s, deadline - time.monotonic())))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def check_stack(context: Context) -> None:
    """Say why a service of the context does not answer, if its local stack is the reason.

    Raises:
        NoStack: the stack was stopped or killed, or no longer answers; or it was started again at other addresses.
    """
    if context.state is None:
        return
    variables = environment_on(context.state)
    of_now = context_of_stack(variables, context.state)
    hosts = ("storage_host", "vertex_host", "logging_host", "pubsub_host")
    if any(getattr(of_now, name) != getattr(context, name) for name in hosts):
        raise NoStack(
            f"The stack on {str(context.state)!r} was started again at other addresses. Run this command again."
        )


def _passing_errors() -> tuple[type[Exception], ...]:
    from google.api_core.exceptions import RetryError, ServerError, TooManyRequests
    from google.auth.exceptions import TransportError
    from requests.exceptions import ChunkedEncodingError, ConnectionError, Timeout  # noqa: A004 - requests' own name

    return (
        RetryError,
        ServerError,
        TooManyRequests,
        TransportError,
        ConnectionError,
        ChunkedEncodingError,
        Timeout,
    )
