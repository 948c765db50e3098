"""Topics and subscriptions created, changed and deleted."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from google.protobuf.field_mask_pb2 import FieldMask

from trainmaster.local.pubsub import names, wire
from trainmaster.local.pubsub.broker import Broker
from trainmaster.local.pubsub.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from trainmaster.local.pubsub.settings import complete_subscription, complete_topic
from trainmaster.local.pubsub.subscription import Subscription

DEFAULT_PAGE = 100
MAX_PAGE = 1000
_IMMUTABLE = frozenset({"name", "topic", "filter", "enable_message_ordering", "detached"})

_Item = TypeVar("_Item")


class Admin:
    """Changes of the broker's resources; each is on disk before it returns."""

    def __init__(self, broker: Broker, *, changed: Callable[[Subscription], None]) -> None:
        """`changed` is told of every subscription that was created, reconfigured or deleted."""
        self._broker = broker
        self._changed = changed

    # -- topics

    def create_topic(self, topic: wire.Message) -> wire.Message:
        names.check_topic(topic.name)
        if topic.name in self._broker.topics:
            raise AlreadyExists(names.id_of(topic.name))
        complete_topic(topic)
        self._keep_topic(topic)
        self._broker.refresh_policies()
        return topic

    def update_topic(self, update: wire.Message, mask: FieldMask) -> wire.Message:
        current = self._broker.topic(update.name)
        topic = _merged(current, update, mask, immutable={"name"})
        complete_topic(topic)
        self._keep_topic(topic)
        return topic

    def _keep_topic(self, topic: wire.Message) -> None:
        self._broker.store.put_topic(topic.name, topic.SerializeToString())
        self._broker.topics[topic.name] = topic

    def delete_topic(self, name: str) -> None:
        """Its subscriptions keep what they are owed, and say `_deleted-topic_` from now on."""
        self._broker.topic(name)
        with self._broker.store.transaction():
            self._broker.store.delete_topic(name)
            for subscription in self._broker.subscriptions.values():
                if subscription.topic == name:
                    subscription.config.topic = names.DELETED_TOPIC
                    self._keep(subscription)
        del self._broker.topics[name]
        self._broker.refresh_policies()

    def list_topics(self, project: str, page_size: int, page_token: str) -> tuple[list[wire.Message], str]:
        names.check_project(project)
        found = [topic for name, topic in self._broker.topics.items() if name.startswith(f"{project}/")]
        return _page(found, page_size, page_token)

    def topic_subscriptions(self, topic: str, page_size: int, page_token: str) -> tuple[list[str], str]:
        self._broker.topic(topic)
        attached = [
            one.config for one in self._broker.subscriptions.values() if one.topic == topic and one.receives
        ]
        page, token = _page(attached, page_size, page_token)
        return [config.name for config in page], token

    # -- subscriptions

    def create_subscription(self, config: wire.Message) -> wire.Message:
        names.check_subscription(config.name)
        if config.name in self._broker.subscriptions:
            raise AlreadyExists(names.id_of(config.name))
        self._broker.topic(config.topic)
        complete_subscription(config)
        subscription_id = self._broker.store.add_subscription(config.name, config.SerializeToString())
        subscription = Subscription(subscription_id, config)
        self._broker.subscriptions[subscription.name] = subscription
        self._broker.refresh_policies()
        self._changed(subscription)
        return config

    def update_subscription(self, update: wire.Message, mask: FieldMask) -> wire.Message:
        subscription = self._broker.subscription(update.name)
        config = _merged(subscription.config, update, mask, immutable=_IMMUTABLE)
        complete_subscription(config)
        self._reconfigure(subscription, config)
        return config

    def set_push(self, name: str, push_config: wire.Message) -> None:
        """Turn a subscription to an endpoint, or back to pull when the endpoint is empty."""
        subscription = self._broker.subscription(name)
        config = wire.Subscription()
        config.CopyFrom(subscription.config)
        config.push_config.CopyFrom(push_config)
        complete_subscription(config)
        self._reconfigure(subscription, config)

    def _reconfigure(self, subscription: Subscription, config: wire.Message) -> None:
        subscription.config = config
        self._keep(subscription)
        self._broker.refresh_policies()
        self._changed(subscription)
        subscription.notify()

    def _keep(self, subscription: Subscription) -> None:
        self._broker.store.put_subscription(subscription.id, subscription.config.SerializeToString())

    def detach(self, name: str) -> None:
        """Nothing reaches the subscription any more, and what it was owed is dropped."""
        subscription = self._broker.subscription(name)
        subscription.config.detached = True
        with self._broker.store.transaction():
            self._keep(subscription)
            self._broker.store.drop_deliveries(subscription.id)
        self._broker.reload(subscription)

    def delete_subscription(self, name: str) -> None:
        subscription = self._broker.subscription(name)
        self._broker.store.delete_subscription(subscription.id)
        del self._broker.subscriptions[name]
        subscription.deleted = True
        if isinstance(subscription.timer, asyncio.TimerHandle):
            subscription.timer.cancel()
        self._changed(subscription)
        subscription.notify()

    def list_subscriptions(
        self, project: str, page_size: int, page_token: str
    ) -> tuple[list[wire.Message], str]:
        names.check_project(project)
        found = [
            one.config for name, one in self._broker.subscriptions.items() if name.startswith(f"{project}/")
        ]
        return _page(found, page_size, page_token)

    def seek(self, name: str, time_us: int) -> None:
        """Take everything published before the time as acknowledged, and owe again what came after and was kept."""
        subscription = self._broker.subscription(name)
        if subscription.config.detached:
            raise FailedPrecondition(f"Subscription {name} is detached; create another one.")
        retain = subscription.config.retain_acked_messages
        self._broker.store.seek(subscription.id, time_us, retain=retain)
        self._broker.reload(subscription)


def _merged(
    current: wire.Message, update: wire.Message, mask: FieldMask, *, immutable: Iterable[str]
) -> wire.Message:
    paths = [path.split(".")[0] for path in mask.paths]
    known = {field.name for field in current.DESCRIPTOR.fields}
    if not paths:
        raise InvalidArgument(
            "The update_mask in the request must be set, and contain a non-empty paths list."
        )
    if unknown := sorted(set(paths) - known):
        raise InvalidArgument(
            f"Invalid update_mask: {', '.join(unknown)} is no field of {current.DESCRIPTOR.name}."
        )
    if fixed := sorted(set(paths) & set(immutable)):
        raise InvalidArgument(f"Invalid update_mask: {', '.join(fixed)} cannot be changed after creation.")
    merged = type(current)()
    merged.CopyFrom(current)
    mask.MergeMessage(update, merged, True, True)  # replace_message_field, replace_repeated_field
    return merged


def _page(items: Sequence[_Item], page_size: int, page_token: str) -> tuple[list[_Item], str]:
    """A page of resources by name and the token of the next; tokens are names, so pages survive changes."""
    if page_size < 0:
        raise InvalidArgument(f"Invalid page size {page_size}: it must not be negative.")
    ordered = sorted(items, key=_name)
    rest = [item for item in ordered if _name(item) > page_token]
    size = min(page_size or DEFAULT_PAGE, MAX_PAGE)
    page = rest[:size]
    return page, _name(page[-1]) if len(rest) > size else ""


def _name(item: wire.Message) -> str:
    return str(item.name)
