"""Moves messages from publishers to subscriptions: combines backlogs, store and clock.

Everything here runs in one event loop without awaiting, so calls never interleave.
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.delivery.backlog import BacklogEntry, Holder
from trainstack.pubsub.delivery.subscription import Subscription
from trainstack.pubsub.errors import ResourceNotFound
from trainstack.pubsub.injections import DELIVER, through_injections
from trainstack.pubsub.store import PubsubStore, StoredMessage

_LOG = logging.getLogger(__name__)
OWED_MAX = 1_000_000
"""Maximum backlog of one subscription: about 160 MB of memory. The real service has no such limit."""
_Resource = TypeVar("_Resource")
_ACK_ID = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,18})")


class PubsubService:
    """Topics and subscriptions by name, and the messages published to them."""

    def __init__(
        self, store: PubsubStore, injections: Injections | None = None, grants: Grants | None = None
    ) -> None:
        """Load everything in the store; unacknowledged messages are ready again. None for no injections, and no grants."""
        self.store = store
        self.grants = grants
        self.injections = injections or Injections()
        self.topics: dict[str, wire.Message] = {
            name: wire.Topic.FromString(body) for name, body in store.resources("topics").items()
        }
        self.snapshots: dict[str, wire.Message] = {
            name: wire.Snapshot.FromString(body) for name, body in store.resources("snapshots").items()
        }
        self.schemas: dict[str, list[wire.Message]] = {}
        schemas = [wire.Schema.FromString(body) for body in store.resources("schemas").values()]
        for schema in sorted(schemas, key=lambda one: one.revision_create_time.ToNanoseconds()):
            self.schemas.setdefault(schema.name, []).append(schema)
        self.subscriptions: dict[str, Subscription] = {}
        for subscription_id, body in store.subscriptions():
            config = wire.Subscription.FromString(body)
            entries = store.unacknowledged_entries(subscription_id)
            if config.enable_message_ordering:
                bodies = store.bodies([entry.message_id for entry in entries])
                for entry in entries:
                    entry.key = wire.PubsubMessage.FromString(bodies[entry.message_id]).ordering_key
            self.subscriptions[config.name] = Subscription(subscription_id, config, entries)
        self.refresh_policies()

    def has(self, name: str) -> bool:
        """Whether there is a topic, subscription, snapshot or schema of this name."""
        return any(name in kind for kind in (self.topics, self.subscriptions, self.snapshots, self.schemas))

    def drop_policy(self, name: str) -> None:
        """Forget the IAM policy of a resource that is gone."""
        if name in self.store.resources("policies"):
            self.store.delete("policies", name)
            if self.grants:
                self.grants.set_policy(name, None, {})

    def put(self, kind: Literal["topics", "snapshots"], resource: wire.Message) -> wire.Message:
        """Keep a new or changed topic or snapshot."""
        self.store.put(kind, resource.name, resource.SerializeToString())
        getattr(self, kind)[resource.name] = resource
        return resource

    def delete_snapshot(self, name: str) -> None:
        self.store.delete("snapshots", name)
        self.drop_policy(name)
        del self.snapshots[name]

    def topic(self, name: str) -> wire.Message:
        """Raises `ResourceNotFound`."""
        return _existing(self.topics, name)

    def subscription(self, name: str) -> Subscription:
        """The subscription with this name.

        Raises:
            InvalidArgumentError: no subscription can have it.
            ResourceNotFound: no subscription has it.
        """
        if name not in self.subscriptions:
            names.check_name(name, kind="subscriptions")
        return _existing(self.subscriptions, name)

    def snapshot(self, name: str) -> wire.Message:
        """Raises `ResourceNotFound`."""
        return _existing(self.snapshots, name)

    def schema(self, name: str) -> wire.Message:
        """The newest revision of the schema, or the one after an `@` in its name. Raises `ResourceNotFound`."""
        base, _, revision = name.partition("@")
        for schema in reversed(self.schemas.get(base, [])):
            if revision in ("", schema.revision_id):
                return schema
        raise ResourceNotFound(names.id_of(name))

    def check_schema_settings(self, topic: wire.Message) -> None:
        """Raises `ResourceNotFound` if the topic's schema or one of its revisions does not exist, or `InvalidArgumentError`."""
        settings = topic.schema_settings
        if not settings.schema or settings.schema == names.DELETED_SCHEMA:
            return
        for revision in ("", settings.first_revision_id, settings.last_revision_id):
            self.schema(f"{settings.schema}@{revision}" if revision else settings.schema)
        if not settings.encoding:
            raise InvalidArgumentError("The encoding of a topic with a schema must be JSON or BINARY.")

    def close(self) -> None:
        for subscription in self.subscriptions.values():
            subscription.stop_timer()
        self.store.close()

    def keep(self, subscription: Subscription) -> None:
        """Write a subscription's configuration to disk."""
        self.store.put_subscription(subscription.id, subscription.config.SerializeToString())

    def refresh_policies(self) -> None:
        """Apply every subscription's configuration to its backlog, after a change of it or of the topics."""
        for subscription in self.subscriptions.values():
            subscription.follow_config(dead_letters=subscription.dead_letter_topic in self.topics)

    def publish(self, topic: str, messages: Sequence[wire.Message]) -> list[str]:
        """Store the messages for every subscription whose filter matches, and return their ids.

        Raises:
            ResourceNotFound: no such topic.
            ResourceExhausted: a subscription's backlog is full; nothing is published.
        """
        self.topic(topic)
        receivers = [
            one for one in self.subscriptions.values() if one.topic == topic and not one.config.detached
        ]
        holders = [one.name for one in self.snapshots.values() if one.topic == topic]
        if self.topics[topic].HasField("message_retention_duration"):
            holders.append(topic)
        for one in receivers:
            if len(one.backlog) + len(messages) > OWED_MAX:
                raise ApiError(
                    Status.RESOURCE_EXHAUSTED,
                    f"Subscription {names.id_of(one.name)} has {len(one.backlog):,} unacknowledged messages; "
                    f"the local stack holds at most {OWED_MAX:,}. Acknowledge them or delete the subscription.",
                )
        now, now_us = Timestamp(), time.time_ns() // 1000
        now.FromMicroseconds(now_us)
        stored: list[StoredMessage] = []
        owed: list[tuple[Subscription, BacklogEntry]] = []
        with self.store.transaction():
            for message_id, message in enumerate(messages, start=self.store.next_message_id()):
                message.message_id = str(message_id)
                message.publish_time.CopyFrom(now)
                body = message.SerializeToString()
                attributes = dict(message.attributes)
                to = [one for one in receivers if one.passes(attributes)]
                stored.append((message_id, body, [one.id for one in to]))
                for one in to:
                    key = one.key_of(message)
                    owed.append((one, BacklogEntry(message_id=message_id, size=len(body), key=key)))
            self.store.add_messages(stored, now_us, holders)
        for subscription, entry in owed:
            subscription.backlog.add(entry)
        for subscription in receivers:
            subscription.notify()
        return [message.message_id for message in messages]

    def take(self, subscription: Subscription, holder: Holder, *, count: int) -> list[wire.Message]:
        """Lease ready messages to the holder, as `ReceivedMessage`s; empty if none is ready."""
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

    def _take(self, subscription: Subscription, holder: Holder, count: int) -> list[wire.Message]:
        leases = subscription.backlog.take(time.monotonic(), holder, count=count)
        self.schedule(subscription)
        bodies = self.store.bodies([lease.entry.message_id for lease in leases])
        counted = bool(subscription.dead_letter_topic)
        return [
            wire.ReceivedMessage(
                ack_id=f"{subscription.id}-{lease.entry.message_id}-{lease.serial}",
                message=wire.PubsubMessage.FromString(bodies[lease.entry.message_id]),
                delivery_attempt=lease.entry.failures + 1 if counted else 0,
            )
            for lease in leases
        ]

    def acknowledge(self, subscription: Subscription, ack_ids: Iterable[str]) -> None:
        """Process acknowledgements; idempotent.

        Raises:
            InvalidArgumentError: an id that this subscription never gave out.
        """
        done = [_parse_ack_id(subscription, ack_id)[0] for ack_id in ack_ids]
        for message_id in done:
            subscription.backlog.ack(message_id)
        self.store.acknowledge(subscription.id, done, holder=subscription.retainer)
        subscription.notify()

    def modify_deadline(self, subscription: Subscription, deadlines: Iterable[tuple[str, float]]) -> None:
        """Set lease deadlines to that many seconds from now; 0 releases the message at once.

        Raises:
            InvalidArgumentError: an id that this subscription never gave out.
        """
        parsed = [(*_parse_ack_id(subscription, ack_id), seconds) for ack_id, seconds in deadlines]
        now = time.monotonic()
        for _, serial, seconds in parsed:
            if seconds > 0:
                subscription.backlog.extend(now, serial=serial, deadline_s=seconds)
            else:
                self._settle_failed(subscription, subscription.backlog.fail(now, serial))
        self.schedule(subscription)

    def _settle_failed(self, subscription: Subscription, failed: Sequence[BacklogEntry]) -> None:
        if not failed:
            return
        given_up = [entry for entry in failed if entry.settled]
        with self.store.transaction():
            self.store.set_failures(subscription.id, failed)
            for entry in given_up:
                self._forward(subscription, entry)
            self.store.acknowledge(
                subscription.id, [entry.message_id for entry in given_up], holder=subscription.retainer
            )
        subscription.notify()

    def _forward(self, subscription: Subscription, entry: BacklogEntry) -> None:
        """Publish a message to the dead-letter topic, with attributes about its origin.

        Source: https://cloud.google.com/pubsub/docs/handling-failures#how_dead_letter_topics_work
        """
        body = self.store.bodies([entry.message_id]).get(entry.message_id)
        if body is None:
            return
        message = wire.PubsubMessage.FromString(body)
        source = {
            "DeliveryCount": str(entry.failures),
            "Subscription": names.id_of(subscription.name),
            "SubscriptionProject": names.project_of(subscription.name),
            "TopicPublishTime": message.publish_time.ToJsonString(),
        }
        message.attributes.update(
            {f"CloudPubSubDeadLetterSource{key}": value for key, value in source.items()}
        )
        _LOG.info(
            "%s: message %d goes to the dead-letter topic after %d attempts",
            subscription.name,
            entry.message_id,
            entry.failures,
        )
        self.publish(subscription.dead_letter_topic, [message])

    def schedule(self, subscription: Subscription) -> None:
        """Schedule a wake-up at the backlog's next deadline or end of back-off."""
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

    def drop_outlived(self) -> None:
        """Delete every message older than its subscription's or topic's retention, and every snapshot that has expired."""
        now_us = time.time_ns() // 1000
        for subscription in self.subscriptions.values():
            oldest_us = now_us - subscription.config.message_retention_duration.ToMicroseconds()
            for message_id in self.store.drop_deliveries(subscription.id, before_us=oldest_us):
                subscription.backlog.ack(message_id)
            self.store.forget(subscription.name, before_us=oldest_us)
        for topic in self.topics.values():
            self.store.forget(
                topic.name, before_us=now_us - topic.message_retention_duration.ToMicroseconds()
            )
        for snapshot in list(self.snapshots.values()):
            if snapshot.expire_time.ToMicroseconds() <= now_us:
                self.delete_snapshot(snapshot.name)

    def seek(
        self, subscription: Subscription, holders: Sequence[str], *, since_us: int, pending: bool
    ) -> None:
        """Let the subscription owe what the holders keep, and with `pending` what it owes, as published since then.

        Everything else counts as acknowledged, and every lease ends.
        """
        kept = self.store.kept_messages(holders, subscription.id if pending else 0, since_us=since_us)
        messages = [(len(body), wire.PubsubMessage.FromString(body)) for _, body in kept]
        wanted = [
            BacklogEntry(message_id=int(one.message_id), size=size, key=subscription.key_of(one))
            for size, one in messages
            if subscription.passes(dict(one.attributes))
        ]
        self.store.replace_deliveries(subscription.id, wanted, holder=subscription.retainer)
        subscription.backlog.replace(wanted)
        subscription.notify()


def _existing(resources: Mapping[str, _Resource], name: str) -> _Resource:
    if name not in resources:
        raise ResourceNotFound(names.id_of(name))
    return resources[name]


def check_attached(subscription: Subscription) -> None:
    """Raises `ApiError`: FailedPrecondition: nothing can be pulled from a detached subscription."""
    if subscription.config.detached:
        raise ApiError(
            Status.FAILED_PRECONDITION,
            f"Subscription {names.id_of(subscription.name)} is detached from its topic.",
        )


def _parse_ack_id(subscription: Subscription, ack_id: str) -> tuple[int, int]:
    """The message id and the delivery's serial.

    Raises:
        InvalidArgumentError: not an id of this subscription.
    """
    match = _ACK_ID.fullmatch(ack_id)
    if not match or int(match[1]) != subscription.id:
        raise InvalidArgumentError(f"You have passed an invalid ack ID to the service (ack_id={ack_id}).")
    return int(match[2]), int(match[3])
