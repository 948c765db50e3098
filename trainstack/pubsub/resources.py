"""Creates, changes, lists and deletes topics, subscriptions and snapshots; each change is on disk before the call returns.

Functions such as `create_topic` handle the request of the gRPC method with their name.
"""

import time
from collections.abc import Container, Mapping
from typing import TypeVar

from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.checks.settings import complete_subscription, complete_topic, refuse_not_imitated
from trainstack.pubsub.delivery.subscription import Subscription
from trainstack.pubsub.errors import AlreadyExists
from trainstack.pubsub.service import PubsubService

DEFAULT_PAGE = 100
MAX_PAGE = 1000
EMPTY: wire.Message = Empty()
_IMMUTABLE = frozenset({"name", "topic", "filter", "enable_message_ordering"})
_WEEK_US = 7 * 24 * 3600 * 1_000_000
_HOUR_US = 3600 * 1_000_000
_Listed = TypeVar("_Listed")


def check_new(name: str, kind: names.Kind, existing: Container[str]) -> None:
    names.check_name(name, kind=kind)
    if name in existing:
        raise AlreadyExists(names.id_of(name))


def create_topic(service: PubsubService, topic: wire.Message) -> wire.Message:
    check_new(topic.name, "topics", service.topics)
    complete_topic(topic)
    service.check_schema_settings(topic)
    service.put("topics", topic)
    service.refresh_policies()
    return topic


def update_topic(service: PubsubService, request: wire.Message) -> wire.Message:
    topic = _config_with(service.topic(request.topic.name), request.topic, request.update_mask)
    complete_topic(topic)
    service.check_schema_settings(topic)
    return service.put("topics", topic)


def delete_topic(service: PubsubService, request: wire.Message) -> wire.Message:
    """Its subscriptions keep their backlogs; their topic becomes `_deleted-topic_`."""
    name = request.topic
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


def list_topics(service: PubsubService, request: wire.Message) -> wire.Message:
    topics, token = page_of(service.topics, request, project=request.project)
    return wire.ListTopicsResponse(topics=topics, next_page_token=token)


def list_topic_subscriptions(service: PubsubService, request: wire.Message) -> wire.Message:
    topic = service.topic(request.topic).name
    attached = {one.name: one.name for one in service.subscriptions.values() if one.topic == topic}
    page, token = page_of(attached, request)
    return wire.ListTopicSubscriptionsResponse(subscriptions=page, next_page_token=token)


def create_subscription(service: PubsubService, config: wire.Message) -> wire.Message:
    check_new(config.name, "subscriptions", service.subscriptions)
    service.topic(config.topic)
    complete_subscription(config)
    subscription_id = service.store.add_subscription(config.name, config.SerializeToString())
    subscription = Subscription(subscription_id, config)
    service.subscriptions[subscription.name] = subscription
    service.refresh_policies()
    return config


def update_subscription(service: PubsubService, request: wire.Message) -> wire.Message:
    subscription = service.subscription(request.subscription.name)
    config = _config_with(subscription.config, request.subscription, request.update_mask)
    complete_subscription(config)
    subscription.config = config
    service.keep(subscription)
    if not config.retain_acked_messages:
        service.store.forget(config.name)
    service.refresh_policies()
    subscription.notify()
    return config


def detach_subscription(service: PubsubService, request: wire.Message) -> wire.Message:
    """Source: https://cloud.google.com/pubsub/docs/detach-subscriptions"""
    subscription = service.subscription(request.subscription)
    subscription.config.detached = True
    service.keep(subscription)
    service.store.replace_deliveries(subscription.id, [], holder="")
    service.store.forget(subscription.name)
    subscription.backlog.replace([])
    subscription.notify()
    return wire.DetachSubscriptionResponse()


def seek(service: PubsubService, request: wire.Message) -> wire.Message:
    """Source: https://cloud.google.com/pubsub/docs/replay-overview"""
    subscription, target = service.subscription(request.subscription), request.WhichOneof("target")
    if target == "time":
        holders, since_us = [subscription.name, subscription.topic], request.time.ToMicroseconds()
    elif target == "snapshot":
        if service.snapshot(request.snapshot).topic != subscription.topic:
            raise InvalidArgumentError(
                f"The snapshot and the subscription have different topics (resource={names.id_of(request.snapshot)})."
            )
        holders, since_us = [request.snapshot], 0
    else:
        raise InvalidArgumentError("A seek needs a time or a snapshot.")
    service.seek(subscription, holders, since_us=since_us, pending=target == "time")
    return wire.SeekResponse()


def delete_subscription(service: PubsubService, request: wire.Message) -> wire.Message:
    subscription = service.subscription(request.subscription)
    service.store.delete_subscription(subscription.id)
    service.store.forget(subscription.name)
    service.drop_policy(subscription.name)
    del service.subscriptions[subscription.name]
    subscription.deleted = True
    subscription.stop_timer()
    subscription.notify()
    return EMPTY


def list_subscriptions(service: PubsubService, request: wire.Message) -> wire.Message:
    page, token = page_of(service.subscriptions, request, project=request.project)
    configs = [subscription.config for subscription in page]
    return wire.ListSubscriptionsResponse(subscriptions=configs, next_page_token=token)


def create_snapshot(service: PubsubService, request: wire.Message) -> wire.Message:
    """It keeps the subscription's backlog and what is published later, for a week less the age of the oldest message."""
    check_new(request.name, "snapshots", service.snapshots)
    refuse_not_imitated(request)
    subscription, store = service.subscription(request.subscription), service.store
    now_us = time.time_ns() // 1000
    snapshot = wire.Snapshot(name=request.name, topic=subscription.topic, labels=request.labels)
    with store.transaction():
        oldest_us = store.keep_backlog(subscription.id, request.name)
        snapshot.expire_time.FromMicroseconds((oldest_us or now_us) + _WEEK_US)
        if snapshot.expire_time.ToMicroseconds() < now_us + _HOUR_US:
            raise ApiError(
                Status.FAILED_PRECONDITION,
                "The snapshot would expire within an hour: acknowledge the oldest messages first.",
            )
        return service.put("snapshots", snapshot)


def update_snapshot(service: PubsubService, request: wire.Message) -> wire.Message:
    current = service.snapshot(request.snapshot.name)
    return service.put("snapshots", _config_with(current, request.snapshot, request.update_mask))


def delete_snapshot(service: PubsubService, request: wire.Message) -> wire.Message:
    service.delete_snapshot(service.snapshot(request.snapshot).name)
    return EMPTY


def list_snapshots(service: PubsubService, request: wire.Message) -> wire.Message:
    snapshots, token = page_of(service.snapshots, request, project=request.project)
    return wire.ListSnapshotsResponse(snapshots=snapshots, next_page_token=token)


def list_topic_snapshots(service: PubsubService, request: wire.Message) -> wire.Message:
    topic = service.topic(request.topic).name
    of_topic = {one.name: one.name for one in service.snapshots.values() if one.topic == topic}
    page, token = page_of(of_topic, request)
    return wire.ListTopicSnapshotsResponse(snapshots=page, next_page_token=token)


def _config_with(current: wire.Message, update: wire.Message, mask: FieldMask) -> wire.Message:
    paths = [path.split(".")[0] for path in mask.paths]
    known = {field.name for field in current.DESCRIPTOR.fields}
    if not paths:
        raise InvalidArgumentError(
            "The update_mask in the request must be set, and contain a non-empty paths list."
        )
    if unknown := sorted(set(paths) - known):
        raise InvalidArgumentError(
            f"Invalid update_mask: {', '.join(unknown)} not found in {current.DESCRIPTOR.name}."
        )
    if fixed := sorted(set(paths) & _IMMUTABLE):
        raise InvalidArgumentError(
            f"Invalid update_mask: {', '.join(fixed)} cannot be changed after creation."
        )
    merged = type(current)()
    merged.CopyFrom(current)
    mask.MergeMessage(update, merged, True, True)  # replace_message_field, replace_repeated_field
    return merged


def page_of(
    matching: Mapping[str, _Listed], request: wire.Message, *, project: str | None = None
) -> tuple[list[_Listed], str]:
    """A page of what has these names, of one project if given, in order of name, and the token of the next page.

    Tokens are names, so they stay valid when resources change.
    """
    if project is not None:
        names.check_project(project)
        matching = {name: one for name, one in matching.items() if name.startswith(f"{project}/")}
    if request.page_size < 0:
        raise InvalidArgumentError(f"Invalid page size {request.page_size}: it must not be negative.")
    if request.page_token and not request.page_token.startswith("projects/"):
        raise InvalidArgumentError(
            f"Invalid page token {request.page_token!r:.100}; expected the next_page_token of an earlier page."
        )
    rest = sorted(name for name in matching if name > request.page_token)
    size = min(request.page_size or DEFAULT_PAGE, MAX_PAGE)
    return [matching[name] for name in rest[:size]], rest[size - 1] if len(rest) > size else ""
