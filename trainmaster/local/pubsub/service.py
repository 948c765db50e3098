"""Messages from publishers to subscriptions and back: the one place where backlogs, store and time meet.

Everything here runs in one event loop without awaiting, so that no two calls ever interleave.
"""

import asyncio
import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmaster.local.iam.service import Grants
from trainmaster.local.injections import Injections
from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.checks import names
from trainmaster.local.pubsub.checks.policy import dead_letter_attributes
from trainmaster.local.pubsub.delivery.backlog import Failed
from trainmaster.local.pubsub.delivery.lease import Delivery, Entry, Holder
from trainmaster.local.pubsub.delivery.subscription import Subscription, delivery_policy
from trainmaster.local.pubsub.errors import InvalidAckIds, InvalidArgument, NotFound
from trainmaster.local.pubsub.injections import DELIVER, through_injections
from trainmaster.local.pubsub.store import Store

_LOG = logging.getLogger(__name__)

# A backlog holds this many ready messages in memory, the store the rest.
_PREFETCH = 1000
_MAX_IN_MEMORY = 50_000


class Service:
    """Topics and subscriptions by name, and what is published to them."""

    def __init__(
        self, store: Store, injections: Injections | None = None, grants: Grants | None = None
    ) -> None:
        """Everything the store holds; what was unacknowledged is ready again. No injections, and every permission, when None."""
        self.store = store
        self.injections = injections or Injections()
        self.grants = grants
        self.topics: dict[str, wire.Message] = {
            name: wire.Topic.FromString(body) for name, body in store.topics().items()
        }
        self.subscriptions: dict[str, Subscription] = {}
        for subscription_id, body in store.subscriptions():
            subscription = Subscription(subscription_id, wire.Subscription.FromString(body))
            self.subscriptions[subscription.name] = subscription
        self.refresh_policies()

    def topic(self, name: str) -> wire.Message:
        """The topic.

        Raises:
            NotFound: there is none of that name.
        """
        if (topic := self.topics.get(name)) is None:
            raise NotFound(names.id_of(name))
        return topic

    def subscription(self, name: str) -> Subscription:
        """The subscription.

        Raises:
            NotFound: there is none of that name.
        """
        if (subscription := self.subscriptions.get(name)) is None:
            raise NotFound(names.id_of(name))
        return subscription

    def close(self) -> None:
        for subscription in self.subscriptions.values():
            subscription.stop_timer()
        self.store.close()

    def keep(self, subscription: Subscription) -> None:
        """Write a subscription's configuration to disk."""
        self.store.put_subscription(subscription.id, subscription.config.SerializeToString())

    def refresh_policies(self) -> None:
        """Have every backlog follow its configuration, after a change of it or of the topics."""
        for subscription in self.subscriptions.values():
            exists = subscription.dead_letter_topic in self.topics
            subscription.backlog.policy = delivery_policy(subscription.config, dead_letters=exists)

    def publish(self, topic: str, messages: Sequence[wire.Message]) -> list[str]:
        """The ids of the messages, kept for every subscription whose filter they pass before this returns.

        Raises:
            NotFound: no such topic.
        """
        self.topic(topic)
        receivers = [one for one in self.subscriptions.values() if one.topic == topic and one.receives]
        now_us = time.time_ns() // 1000
        owed: list[tuple[Subscription, Entry]] = []
        with self.store.transaction():
            for message_id, message in enumerate(messages, start=self.store.next_message_id()):
                message.message_id = str(message_id)
                message.publish_time.FromMicroseconds(now_us)
                body = message.SerializeToString()
                attributes = dict(message.attributes)
                entry = Entry(message_id=message_id, ordering_key=message.ordering_key, size=len(body))
                to = [one for one in receivers if one.passes(attributes)]
                self.store.add_message(entry, now_us, body, [one.id for one in to])
                owed.extend((one, replace(entry)) for one in to)
        for subscription, entry in owed:
            self._offer(subscription, entry)
        for subscription in receivers:
            subscription.notify()
        return [message.message_id for message in messages]

    def _offer(self, subscription: Subscription, entry: Entry) -> None:
        if subscription.complete and len(subscription.backlog) < _PREFETCH:
            subscription.backlog.add(entry)
            subscription.cursor = entry.message_id
        else:
            subscription.complete = False

    def take(self, subscription: Subscription, holder: Holder, *, count: int) -> list[Delivery]:
        """What is ready, leased to the holder; empty when nothing is."""
        while True:
            taken = self._take(subscription, holder, count)
            if not taken or not self.injections.concerns(DELIVER):
                return taken
            kept = through_injections(
                self.injections,
                taken,
                subscription=subscription.name,
                topic=subscription.topic,
                lose=lambda one: self.acknowledge(subscription, [one.ack_id]),
                hold_back=lambda one, seconds: self.modify_deadline(subscription, [(one.ack_id, seconds)]),
            )
            if kept:
                return kept

    def _take(self, subscription: Subscription, holder: Holder, count: int) -> list[Delivery]:
        self._refill(subscription)
        leases = subscription.backlog.take(time.monotonic(), holder, count=count)
        self.schedule(subscription)
        bodies = self.store.bodies([lease.entry.message_id for lease in leases])
        counted = bool(subscription.dead_letter_topic)
        return [
            Delivery(
                ack_id=f"{subscription.id}-{lease.entry.message_id}-{lease.serial}",
                message=wire.PubsubMessage.FromString(bodies[lease.entry.message_id]),
                attempt=lease.entry.failures + 1 if counted else 0,
            )
            for lease in leases
        ]

    def _refill(self, subscription: Subscription) -> None:
        backlog = subscription.backlog
        if subscription.complete or backlog.ready >= _PREFETCH // 2 or len(backlog) >= _MAX_IN_MEMORY:
            return
        entries = self.store.owed(subscription.id, after=subscription.cursor, limit=_PREFETCH)
        for entry in entries:
            backlog.add(entry)
        if entries:
            subscription.cursor = entries[-1].message_id
        subscription.complete = len(entries) < _PREFETCH

    def acknowledge(self, subscription: Subscription, ack_ids: Iterable[str]) -> None:
        """Take acknowledgements; idempotent.

        Raises:
            InvalidArgument: an id that this subscription never gave out.
            InvalidAckIds: under exactly-once delivery, ids whose deadline has passed; the others count.
        """
        parsed = [(ack_id, *_parse_ack_id(subscription, ack_id)) for ack_id in ack_ids]
        late = self._late(subscription, parsed)
        now = time.monotonic()
        done: list[int] = []
        for _, message_id, serial in parsed:
            done.extend(subscription.backlog.ack(now, message_id=message_id, serial=serial))
        self._forget(subscription, done)
        subscription.notify()
        if late:
            raise InvalidAckIds(late)

    def modify_deadline(self, subscription: Subscription, deadlines: Iterable[tuple[str, float]]) -> None:
        """Move ends of leases to so many seconds from now; 0 gives the message back at once.

        Raises:
            InvalidArgument: an id that this subscription never gave out.
            InvalidAckIds: as `acknowledge`.
        """
        parsed = [(ack_id, *_parse_ack_id(subscription, ack_id), seconds) for ack_id, seconds in deadlines]
        late = self._late(subscription, [(ack_id, message, serial) for ack_id, message, serial, _ in parsed])
        now = time.monotonic()
        for _, _, serial, seconds in parsed:
            if seconds > 0:
                subscription.backlog.extend(now, serial=serial, deadline_s=seconds)
            else:
                self._settle_failed(subscription, subscription.backlog.fail(now, serial))
        self.schedule(subscription)
        if late:
            raise InvalidAckIds(late)

    def _late(self, subscription: Subscription, parsed: Iterable[tuple[str, int, int]]) -> list[str]:
        if not subscription.config.enable_exactly_once_delivery:
            return []
        return [ack_id for ack_id, _, serial in parsed if not subscription.backlog.held(serial)]

    def _forget(self, subscription: Subscription, message_ids: Sequence[int]) -> None:
        if message_ids:
            retain = subscription.config.retain_acked_messages
            self.store.acknowledge(subscription.id, message_ids, retain=retain)

    def _settle_failed(self, subscription: Subscription, failed: Failed) -> None:
        if not failed.again and not failed.given_up:
            return
        with self.store.transaction():
            self.store.set_failures(subscription.id, failed.again)
            for entry in failed.given_up:
                self._forward(subscription, entry)
            self._forget(subscription, [*failed.done, *(entry.message_id for entry in failed.given_up)])
        subscription.notify()

    def _forward(self, subscription: Subscription, entry: Entry) -> None:
        body = self.store.bodies([entry.message_id]).get(entry.message_id)
        if body is None:
            return
        message = wire.PubsubMessage.FromString(body)
        attributes = dead_letter_attributes(
            subscription_id=names.id_of(subscription.name),
            project=names.project_of(subscription.name),
            failures=entry.failures,
            published=message.publish_time.ToJsonString(),
        )
        message.attributes.update(attributes)
        _LOG.info(
            "%s gives up message %d after %d attempts", subscription.name, entry.message_id, entry.failures
        )
        self.publish(subscription.dead_letter_topic, [message])

    def schedule(self, subscription: Subscription) -> None:
        """Arrange to wake at the backlog's next deadline or end of back-off."""
        due = subscription.backlog.wake_at()
        if due >= subscription.timer_at or subscription.deleted:
            return
        subscription.stop_timer()
        subscription.timer_at = due
        delay_s = max(0.0, due - time.monotonic())
        subscription.timer = asyncio.get_running_loop().call_later(delay_s, self._tick, subscription)

    def _tick(self, subscription: Subscription) -> None:
        subscription.timer, subscription.timer_at = None, math.inf
        self._settle_failed(subscription, subscription.backlog.expire(time.monotonic()))
        subscription.notify()
        self.schedule(subscription)

    def reload(self, subscription: Subscription) -> None:
        """Begin again with what the store says: after a seek, or after retention dropped messages."""
        subscription.backlog.clear()
        subscription.cursor, subscription.complete = 0, False
        subscription.notify()

    def drop_outlived(self) -> None:
        """Forget every message older than its subscription's retention."""
        for subscription in self.subscriptions.values():
            oldest_us = int((time.time() - subscription.retention.total_seconds()) * 1e6)
            if self.store.drop_deliveries(subscription.id, before_us=oldest_us):
                self.reload(subscription)


def _parse_ack_id(subscription: Subscription, ack_id: str) -> tuple[int, int]:
    """The message id and the delivery's serial.

    Raises:
        InvalidArgument: not an id of this subscription.
    """
    parts = ack_id.split("-")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or int(parts[0]) != subscription.id:  # noqa: PLR2004  # the three parts `take` writes
        raise InvalidArgument(f"You have passed an invalid ack ID to the service (ack_id={ack_id}).")
    return int(parts[1]), int(parts[2])
