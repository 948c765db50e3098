"""Delivery of events to one function: streaming pull, one HTTP request per event, ack or nack by its response.

A push subscription would send another envelope than Eventarc does.
"""

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import unquote

from google.cloud.pubsub_v1 import SubscriberClient
from google.cloud.pubsub_v1.subscriber.futures import StreamingPullFuture
from google.cloud.pubsub_v1.subscriber.message import Message as ReceivedMessage
from google.cloud.pubsub_v1.subscriber.scheduler import ThreadScheduler
from google.cloud.pubsub_v1.types import FlowControl

from trainstack.events.cloudevent import (
    CloudEvent,
    NotANotificationError,
    from_message,
    from_notification,
)
from trainstack.events.eventarc import Transport
from trainstack.functions.function import BucketTrigger, Function, TopicTrigger
from trainstack.injections import InjectionKind, Injections
from trainstack.tasks import cancel_all

Invoke = Callable[[CloudEvent], int]
"""Sends one event to a function and returns the response's HTTP status. Blocks; called from several threads.
"""

STOP_GRACE_S = 2.0
_LEASE_MARGIN_S = 60
_AGAIN_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False)
class Delivery:
    """Delivers events to one function between `start` and `stop`.

    At most `concurrency` events are in flight at once; the others wait in the subscription. An event still
    unanswered when the stack stops or crashes is redelivered after the next start.

    Attributes:
        transport: topic and subscription; both must exist when `start` is called.
        subscriber: connected; not closed here.
        invoke: sends one event to the function.
    """

    function: Function
    transport: Transport
    subscriber: SubscriberClient
    invoke: Invoke
    _stream: StreamingPullFuture | None = field(default=None, init=False)
    _keeper: "asyncio.Task[None] | None" = field(default=None, init=False)

    def start(self) -> None:
        """Start pulling, and reconnect whenever the stream breaks for good."""
        self._keeper = asyncio.create_task(self._keep_pulling(), name=f"deliver to {self.function.name}")

    async def stop(self) -> None:
        """Stop pulling, and give events in flight STOP_GRACE_S to be answered. Safe to call twice."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        await cancel_all([keeper])
        if self._stream is not None:
            ended = asyncio.to_thread(_end, self._stream)
            await asyncio.gather(ended, return_exceptions=True)

    async def _keep_pulling(self) -> None:
        while True:
            self._stream = self._pull()
            try:
                await asyncio.shield(asyncio.wrap_future(self._stream))
            except Exception as failure:  # whatever broke the stream: events stay queued until it is reopened
                _log.warning(
                    "event stream of %s broke; reconnecting in %.0f s: %r",
                    self.function.name,
                    _AGAIN_S,
                    failure,
                )
            await asyncio.sleep(_AGAIN_S)

    def _pull(self) -> StreamingPullFuture:
        threads = self.function.concurrency
        return self.subscriber.subscribe(
            self.transport.subscription_name,
            callback=self._deliver,
            flow_control=FlowControl(
                max_messages=threads, max_lease_duration=self.function.timeout_s + _LEASE_MARGIN_S
            ),
            scheduler=ThreadScheduler(
                ThreadPoolExecutor(max_workers=threads, thread_name_prefix=self.function.name)
            ),
            await_callbacks_on_shutdown=True,
        )

    def _deliver(self, received: ReceivedMessage) -> None:
        try:
            event = self._event(received)
        except NotANotificationError as error:
            _log.warning("dropped an event for %s: %s", self.function.name, error)
            received.ack()
            return
        status = self.invoke(event)
        if is_final(status, retry=self.function.retry):
            received.ack()
        else:
            _log.warning("%s answered %d to event %s", self.function.name, status, received.message_id)
            received.nack()

    def _event(self, message: ReceivedMessage) -> CloudEvent:
        match self.function.trigger:
            case BucketTrigger():
                return from_notification(message)
            case TopicTrigger():
                return from_message(
                    message,
                    topic_name=self.transport.topic_name,
                    subscription_name=self.transport.subscription_name,
                )


def is_final(status: int, *, retry: bool) -> bool:
    """Whether a response settles an event: a success always does; without retries, every response does."""
    return 200 <= status < 300 or not retry  # noqa: PLR2004  # HTTP's success class


def _end(stream: StreamingPullFuture) -> None:
    stream.cancel()
    stream.result(timeout=STOP_GRACE_S)


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
