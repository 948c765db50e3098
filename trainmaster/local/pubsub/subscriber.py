"""The Subscriber service without its stream: one method per call, request in, response out."""

import time

from google.protobuf.empty_pb2 import Empty

from trainmaster.local.pubsub import instants, wire
from trainmaster.local.pubsub.admin import Admin
from trainmaster.local.pubsub.broker import Broker, Delivery
from trainmaster.local.pubsub.errors import InvalidArgument, Unimplemented
from trainmaster.local.pubsub.lease import Holder
from trainmaster.local.pubsub.policy import MAX_ACK_DEADLINE_S
from trainmaster.local.pubsub.streaming import pullable, received

# A pull that finds nothing answers empty shortly before the caller's own deadline would end it in an error.
MAX_PULL_WAIT_S = 60.0
PULL_MARGIN_S = 0.5
MAX_PULL_BYTES = 10_000_000


class Subscriber:
    """`google.pubsub.v1.Subscriber`. `remaining_s` is how long the caller still waits."""

    def __init__(self, broker: Broker, admin: Admin) -> None:
        self._broker = broker
        self._admin = admin

    async def CreateSubscription(self, subscription: wire.Message, _remaining_s: float) -> wire.Message:
        return self._admin.create_subscription(subscription)

    async def GetSubscription(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        return self._broker.subscription(request.subscription).config

    async def UpdateSubscription(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        return self._admin.update_subscription(request.subscription, request.update_mask)

    async def ListSubscriptions(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        found, token = self._admin.list_subscriptions(request.project, request.page_size, request.page_token)
        return wire.ListSubscriptionsResponse(subscriptions=found, next_page_token=token)

    async def DeleteSubscription(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._admin.delete_subscription(request.subscription)
        return Empty()

    async def ModifyPushConfig(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._admin.set_push(request.subscription, request.push_config)
        return Empty()

    async def Pull(self, request: wire.Message, remaining_s: float) -> wire.Message:
        if request.max_messages < 1:
            raise InvalidArgument(
                f"The value for max_messages is too small. You passed {request.max_messages} in the request, "
                "but the minimum value is 1."
            )
        began = time.monotonic()
        wait_s = 0.0 if request.return_immediately else min(MAX_PULL_WAIT_S, remaining_s - PULL_MARGIN_S)
        deliveries = await self._pull(
            request.subscription, request.max_messages, until=began + wait_s, gone=began + remaining_s
        )
        return wire.PullResponse(received_messages=received(deliveries))

    async def _pull(self, name: str, count: int, *, until: float, gone: float) -> list[Delivery]:
        """What there is by `until`; nothing is given to a caller who is `gone`, for it would be hidden a while."""
        while True:
            if time.monotonic() >= gone:
                return []
            subscription = pullable(self._broker, name)
            deliveries = self._broker.take(
                subscription,
                Holder(),
                deadline_s=subscription.config.ack_deadline_seconds,
                count=count,
                max_bytes=MAX_PULL_BYTES,
            )
            left_s = until - time.monotonic()
            if deliveries or left_s <= 0:
                return deliveries
            await subscription.changed(left_s)

    async def Acknowledge(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._broker.acknowledge(self._broker.subscription(request.subscription), request.ack_ids)
        return Empty()

    async def ModifyAckDeadline(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        seconds = request.ack_deadline_seconds
        if not 0 <= seconds <= MAX_ACK_DEADLINE_S:
            raise InvalidArgument(
                f"Invalid ack_deadline_seconds {seconds}: it must be from 0 to {MAX_ACK_DEADLINE_S}."
            )
        subscription = self._broker.subscription(request.subscription)
        self._broker.modify_deadline(subscription, [(ack_id, seconds) for ack_id in request.ack_ids])
        return Empty()

    async def Seek(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        if not request.HasField("time"):
            raise Unimplemented("This emulator keeps no snapshots; seek to a time instead.")
        self._admin.seek(request.subscription, instants.instant_us(request.time))
        return wire.SeekResponse()

    async def ListSnapshots(self, _request: wire.Message, _remaining_s: float) -> wire.Message:
        return wire.ListSnapshotsResponse()
