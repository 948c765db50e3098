"""StreamingPull: requests in, messages out, independent of each other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from trainstack.errors import InvalidArgumentError
from trainstack.pubsub import wire
from trainstack.pubsub.checks.names import id_of
from trainstack.pubsub.checks.settings import MAX_ACK_DEADLINE_S, MIN_ACK_DEADLINE_S
from trainstack.pubsub.delivery.backlog import Holder
from trainstack.pubsub.errors import ResourceNotFound
from trainstack.pubsub.service import PubsubService, check_attached

# Responses stay small, so that several streams of one subscription share its messages evenly.
BATCH_MESSAGES = 200
BATCH_BYTES = 1_000_000


class PullStream:
    """One open StreamingPull call."""

    def __init__(self, service: PubsubService, first: wire.Message) -> None:
        """Open on the first request.

        Raises:
            ResourceNotFound: no such subscription.
            InvalidArgumentError: a deadline outside 10 to 600 s.
        """
        self._service = service
        self._subscription = service.subscription(first.subscription)
        deadline_s = _deadline(first.stream_ack_deadline_seconds)
        self._holder = Holder(deadline_s=deadline_s, batch_bytes=BATCH_BYTES)
        if first.max_outstanding_messages > 0:
            self._holder.max_messages = first.max_outstanding_messages
        if first.max_outstanding_bytes > 0:
            self._holder.max_bytes = first.max_outstanding_bytes
        self._finished = False
        self._fault: Exception | None = None
        self._settle(first)

    async def listen(self, requests: AsyncIterator[wire.Message]) -> None:
        """Process the client's acknowledgements and deadline changes until it closes its side."""
        try:
            async for request in requests:
                if request.stream_ack_deadline_seconds:
                    self._holder.deadline_s = _deadline(request.stream_ack_deadline_seconds)
                self._settle(request)
        except InvalidArgumentError as fault:
            self._fault = fault
        finally:
            self._finished = True
            self._subscription.notify()

    def _settle(self, request: wire.Message) -> None:
        ids, seconds = request.modify_deadline_ack_ids, request.modify_deadline_seconds
        if len(ids) != len(seconds):
            raise InvalidArgumentError(
                f"The request has {len(ids)} modify_deadline_ack_ids and {len(seconds)} modify_deadline_seconds; "
                "both must have the same length."
            )
        # A stream cannot report an invalid id: ignore it and process the others.
        with contextlib.suppress(InvalidArgumentError):
            self._service.acknowledge(self._subscription, request.ack_ids)
        with contextlib.suppress(InvalidArgumentError):
            self._service.modify_deadline(self._subscription, zip(ids, seconds, strict=True))

    async def responses(self) -> AsyncIterator[wire.Message]:
        """Messages as they become ready, until the client closes.

        Raises:
            ResourceNotFound: the subscription was deleted in the meantime.
            InvalidArgumentError: a later request was malformed.
        """
        while not self._finished:
            if self._subscription.deleted:
                raise ResourceNotFound(id_of(self._subscription.name))
            check_attached(self._subscription)
            deliveries = self._service.take(self._subscription, self._holder, count=BATCH_MESSAGES)
            if deliveries:
                yield wire.StreamingPullResponse(received_messages=deliveries)
            else:
                await self._subscription.changed()
        if self._fault is not None:
            raise self._fault


def _deadline(seconds: int) -> float:
    if not MIN_ACK_DEADLINE_S <= seconds <= MAX_ACK_DEADLINE_S:
        raise InvalidArgumentError(
            f"Invalid stream_ack_deadline_seconds {seconds}: it must be from "
            f"{MIN_ACK_DEADLINE_S} to {MAX_ACK_DEADLINE_S}."
        )
    return float(seconds)


async def serve_stream(
    service: PubsubService, requests: AsyncIterator[wire.Message], permit: Callable[[wire.Message], None]
) -> AsyncIterator[wire.Message]:
    """Serve one StreamingPull call; `permit` raises if the caller may not open the stream that the first request names.

    Raises:
        InvalidArgumentError: the client closed before its first request; otherwise what `PullStream` raises.
    """
    first = await anext(requests, None)
    if first is None:
        raise InvalidArgumentError(
            "The stream was closed before its first request, which must name a subscription."
        )
    permit(first)
    stream = PullStream(service, first)
    listening = asyncio.create_task(stream.listen(requests))
    try:
        async for response in stream.responses():
            yield response
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
