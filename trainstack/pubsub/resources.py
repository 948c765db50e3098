"""Creates, changes, lists and deletes topics, subscriptions and snapshots; each change is on disk before the call returns.

Every public method handles the request of the gRPC method with its name.
"""

import time
from collections.abc import Container, Iterable

from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask

from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.checks.settings import complete_subscription, complete_topic, refuse_not_imitated
from trainstack.pubsub.delivery.subscription import Subscription
from trainstack.pubsub.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from trainstack.pubsub.service import PubsubService

DEFAULT_PAGE = 100
MAX_PAGE = 1000
EMPTY: wire.Message = Empty()
_IMMUTABLE = frozenset({"name", "topic", "filter", "enable_message_ordering"})
_WEEK_US = 7 * 24 * 3600 * 1_000_000
_HOUR_US = 3600 * 1_000_000


def check_new(name: str, kind: names.Kind, existing: Container[str]) -> None:
    names.check_name(name, kind=kind)
    if name in existing:
        raise AlreadyExists(names.id_of(name))


class Topics:
    def __init__(self, service: PubsubService) -> None:
        self._service = service

    def create(self, topic: wire.Message) -> wire.Message:
        check_new(topic.name, "topics", self._service.topics)
        complete_topic(topic)
        self._service.check_schema_settings(topic)
        self._service.put("topics", topic)
        self._service.refresh_policies()
        return topic

    def update(self, request: wire.Message) -> wire.Message:
        topic = _config_with(self._service.topic(request.topic.name), request.topic, request.update_mask)
        complete_topic(topic)
        self._service.check_schema_settings(topic)
        return self._service.put("topics", topic)

    def delete(self, request: wire.Message) -> wire.Message:
        """Its subscriptions keep their backlogs; their topic becomes `_deleted-topic_`."""
        name, service = request.topic, self._service
        service.topic(name)
        with service.store.transaction():
            service.store.delete("topics", name)
            for subscription in service.subscriptions.values():
                if subscription.topic == name:
                    subscription.config.topic = names.DELETED_TOPIC
                    service.keep(subscription)
        del service.topics[name]
        service.drop_policy(name)
        service.refresh_policies()
        return EMPTY

    def list(self, request: wire.Message) -> wire.Message:
        page, token = page_of(self._service.topics, request, project=request.project)
        return wire.ListTopicsResponse(
            topics=[self._service.topics[name] for name in page], next_page_token=token
        )

    def list_subscriptions(self, request: wire.Message) -> wire.Message:
        topic = self._service.topic(request.topic).name
        attached = [one.name for one in self._service.subscriptions.values() if one.topic == topic]
        page, token = page_of(attached, request)
        return wire.ListTopicSubscriptionsResponse(subscriptions=page, next_page_token=token)


class Subscriptions:
    def __init__(self, service: PubsubService) -> None:
        self._service = service

    def create(self, config: wire.Message) -> wire.Message:
        check_new(config.name, "subscriptions", self._service.subscriptions)
        self._service.topic(config.topic)
        complete_subscription(config)
        subscription_id = self._service.store.add_subscription(config.name, config.SerializeToString())
        subscription = Subscription(subscription_id, config)
        self._service.subscriptions[subscription.name] = subscription
        self._service.refresh_policies()
        return config

    def update(self, request: wire.Message) -> wire.Message:
        subscription = self._service.subscription(request.subscription.name)
        config = _config_with(subscription.config, request.subscription, request.update_mask)
        complete_subscription(config)
        subscription.config = config
        self._service.keep(subscription)
        if not config.retain_acked_messages:
            self._service.store.forget(config.name)
        self._service.refresh_policies()
        subscription.notify()
        return config

    def detach(self, request: wire.Message) -> wire.Message:
        """Source: https://cloud.google.com/pubsub/docs/detach-subscriptions"""
        subscription = self._service.subscription(request.subscription)
        subscription.config.detached = True
        self._service.keep(subscription)
        self._service.store.replace_deliveries(subscription.id, [], holder="")
        self._service.store.forget(subscription.name)
        subscription.backlog.replace([])
        subscription.notify()
        return wire.plain("DetachSubscriptionResponse")()

    def seek(self, request: wire.Message) -> wire.Message:
        """Source: https://cloud.google.com/pubsub/docs/replay-overview"""
        subscription, target = self._service.subscription(request.subscription), request.WhichOneof("target")
        if target == "time":
            holders, since_us = [subscription.name, subscription.topic], request.time.ToMicroseconds()
        elif target == "snapshot":
            if self._service.snapshot(request.snapshot).topic != subscription.topic:
                raise InvalidArgument(
                    f"The snapshot and the subscription have different topics (resource={names.id_of(request.snapshot)})."
                )
            holders, since_us = [request.snapshot], 0
        else:
            raise InvalidArgument("A seek needs a time or a snapshot.")
        self._service.seek(subscription, holders, since_us=since_us, pending=target == "time")
        return wire.plain("SeekResponse")()

    def delete(self, request: wire.Message) -> wire.Message:
        subscription = self._service.subscription(request.subscription)
        self._service.store.delete_subscription(subscription.id)
        self._service.store.forget(subscription.name)
        self._service.drop_policy(subscription.name)
        del self._service.subscriptions[subscription.name]
        subscription.deleted = True
        subscription.stop_timer()
        subscription.notify()
        return EMPTY

    def list(self, request: wire.Message) -> wire.Message:
        page, token = page_of(self._service.subscriptions, request, project=request.project)
        configs = [self._service.subscriptions[name].config for name in page]
        return wire.ListSubscriptionsResponse(subscriptions=configs, next_page_token=token)


class Snapshots:
    def __init__(self, service: PubsubService) -> None:
        self._service = service

    def create(self, request: wire.Message) -> wire.Message:
        """It keeps the subscription's backlog and what is published later, for a week less the age of the oldest message."""
        check_new(request.name, "snapshots", self._service.snapshots)
        refuse_not_imitated(request)
        subscription, store = self._service.subscription(request.subscription), self._service.store
        now_us = time.time_ns() // 1000
        snapshot = wire.plain("Snapshot")(name=request.name, topic=subscription.topic, labels=request.labels)
        with store.transaction():
            oldest_us = store.keep_backlog(subscription.id, request.name)
            snapshot.expire_time.FromMicroseconds((oldest_us or now_us) + _WEEK_US)
            if snapshot.expire_time.ToMicroseconds() < now_us + _HOUR_US:
                raise FailedPrecondition(
                    "The snapshot would expire within an hour: acknowledge the oldest messages first."
                )
            return self._service.put("snapshots", snapshot)

    def update(self, request: wire.Message) -> wire.Message:
        current = self._service.snapshot(request.snapshot.name)
        return self._service.put("snapshots", _config_with(current, request.snapshot, request.update_mask))

    def delete(self, request: wire.Message) -> wire.Message:
        self._service.delete_snapshot(self._service.snapshot(request.snapshot).name)
        return EMPTY

    def list(self, request: wire.Message) -> wire.Message:
        page, token = page_of(self._service.snapshots, request, project=request.project)
        shown = [self._service.snapshots[name] for name in page]
        return wire.plain("ListSnapshotsResponse")(snapshots=shown, next_page_token=token)

    def list_of_topic(self, request: wire.Message) -> wire.Message:
        topic = self._service.topic(request.topic).name
        page, token = page_of(
            [one.name for one in self._service.snapshots.values() if one.topic == topic], request
        )
        return wire.plain("ListTopicSnapshotsResponse")(snapshots=page, next_page_token=token)


def _config_with(current: wire.Message, update: wire.Message, mask: FieldMask) -> wire.Message:
    paths = [path.split(".")[0] for path in mask.paths]
    known = {field.name for field in current.DESCRIPTOR.fields}
    if not paths:
        raise InvalidArgument(
            "The update_mask in the request must be set, and contain a non-empty paths list."
        )
    if unknown := sorted(set(paths) - known):
        raise InvalidArgument(
            f"Invalid update_mask: {', '.join(unknown)} not found in {current.DESCRIPTOR.name}."
        )
    if fixed := sorted(set(paths) & _IMMUTABLE):
        raise InvalidArgument(f"Invalid update_mask: {', '.join(fixed)} cannot be changed after creation.")
    merged = type(current)()
    merged.CopyFrom(current)
    mask.MergeMessage(update, merged, True, True)  # replace_message_field, replace_repeated_field
    return merged


def page_of(
    matching: Iterable[str], request: wire.Message, *, project: str | None = None
) -> tuple[list[str], str]:
    """A page of the names, of one project if given, and the token of the next page.

    Tokens are names, so they stay valid when resources change.
    """
    if project is not None:
        names.check_project(project)
        matching = [name for name in matching if name.startswith(f"{project}/")]
    if request.page_size < 0:
        raise InvalidArgument(f"Invalid page size {request.page_size}: it must not be negative.")
    rest = sorted(name for name in matching if name > request.page_token)
    size = min(request.page_size or DEFAULT_PAGE, MAX_PAGE)
    return rest[:size], rest[size - 1] if len(rest) > size else ""
