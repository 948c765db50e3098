"""Push subscriptions: one task each posts messages to the endpoint and settles them by the answer.

Source: https://cloud.google.com/pubsub/docs/push
"""

import asyncio
import base64
import json
import logging
from collections.abc import Mapping

import h11

from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.delivery.lease import Delivery, Holder
from trainmaster.local.pubsub.delivery.subscription import Subscription
from trainmaster.local.pubsub.push.http_post import post
from trainmaster.local.pubsub.service import Service

_LOG = logging.getLogger(__name__)

SUCCESS = frozenset({102, 200, 201, 202, 204})
MAX_WINDOW = 64
# The lease outlasts the request, so that the answer and not the deadline decides.
_GRACE_S = 5.0


class Pusher:
    """The deliveries of one subscription, until `stop`.

    How many are under way at once begins at 1, grows by one with each success (so it doubles per round) and halves
    with each failure, as the service ramps up.
    """

    def __init__(self, service: Service, subscription: Subscription) -> None:
        self._service = service
        self._subscription = subscription
        self._window = 1
        self._under_way: set[asyncio.Task[None]] = set()
        self._holder = Holder(per_key=1)
        self._task = asyncio.create_task(self._run(), name=f"push {subscription.name}")

    def serves(self, subscription: Subscription) -> bool:
        """Whether this is the pusher of that very subscription, not of an older one of the same name."""
        return subscription is self._subscription

    async def stop(self) -> None:
        """Break off; what was under way is delivered again by whoever comes next."""
        tasks = [self._task, *self._under_way]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            free = self._window - len(self._under_way)
            deliveries = self._take(free) if free > 0 else []
            for delivery in deliveries:
                task = asyncio.create_task(self._deliver(delivery))
                self._under_way.add(task)
                task.add_done_callback(self._finished)
            if not deliveries:
                await self._subscription.changed()

    def _take(self, count: int) -> list[Delivery]:
        self._holder.deadline_s = self._subscription.config.ack_deadline_seconds + _GRACE_S
        return self._service.take(self._subscription, self._holder, count=count)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            _LOG.error("push of %s broke", self._subscription.name, exc_info=fault)
        self._subscription.notify()

    async def _deliver(self, delivery: Delivery) -> None:
        config = self._subscription.config
        endpoint = config.push_config.push_endpoint
        body, headers = push_request(config, delivery)
        answer = await _answer(endpoint, body, headers, timeout_s=config.ack_deadline_seconds)
        success = answer in SUCCESS
        if success:
            self._window = min(self._window + 1, MAX_WINDOW)
            self._service.acknowledge(self._subscription, [delivery.ack_id])
            return
        self._window = max(1, self._window // 2)
        _LOG.warning(
            "%s: %s answered %s to message %s", config.name, endpoint, answer, delivery.message.message_id
        )
        self._service.modify_deadline(self._subscription, [(delivery.ack_id, 0)])


async def _answer(endpoint: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> int | str:
    """The status, or in words why there is none."""
    try:
        async with asyncio.timeout(timeout_s):
            return await post(endpoint, body, headers)
    except TimeoutError:
        return f"nothing within the ack deadline of {timeout_s:g} s"
    except (OSError, h11.ProtocolError) as fault:
        return f"nothing ({fault})"


def push_request(config: wire.Message, delivery: Delivery) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a push, wrapped or as the subscription asks.

    The wrapped body names the id and the publish time in both spellings, as the official emulator and Eventarc do;
    like the service it adds `orderingKey` and `deliveryAttempt` where they exist.
    """
    message = delivery.message
    if config.push_config.HasField("no_wrapper"):
        headers = {"content-type": "application/octet-stream"}
        if config.push_config.no_wrapper.write_metadata:
            headers |= {
                "x-goog-pubsub-message-id": message.message_id,
                "x-goog-pubsub-subscription-name": config.name,
                "x-goog-pubsub-publish-time": message.publish_time.ToJsonString(),
            }
            headers |= {name: value for name, value in message.attributes.items() if value.isascii()}
        return bytes(message.data), headers
    published = message.publish_time.ToJsonString()
    inner: dict[str, object] = {
        "data": base64.b64encode(message.data).decode(),
        "messageId": message.message_id,
        "message_id": message.message_id,
        "publishTime": published,
        "publish_time": published,
    }
    if message.attributes:
        inner["attributes"] = dict(message.attributes)
    if message.ordering_key:
        inner["orderingKey"] = message.ordering_key
    outer: dict[str, object] = {"subscription": config.name, "message": inner}
    if delivery.attempt:
        outer["deliveryAttempt"] = delivery.attempt
    return json.dumps(outer).encode(), {"content-type": "application/json", "user-agent": "APIs-Google"}
