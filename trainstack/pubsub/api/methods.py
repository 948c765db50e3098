"""The methods of the four services: name, HTTP rule and handler."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from trainstack.pubsub import policies, resources, schemas, wire
from trainstack.pubsub.checks.publishing import check_publish
from trainstack.pubsub.checks.settings import MAX_ACK_DEADLINE_S
from trainstack.pubsub.delivery.backlog import Holder
from trainstack.pubsub.errors import InvalidArgument
from trainstack.pubsub.service import PubsubService, check_attached

# An empty pull responds shortly before the caller's deadline would turn it into an error.
MAX_PULL_WAIT_S = 60.0
PULL_MARGIN_S = 0.5
MAX_PULL_BYTES = 10_000_000

Handler: TypeAlias = Callable[..., Any]
"""Handles a request to the service; a coroutine function also receives the seconds left until the caller's deadline."""

KINDS = ("topics", "subscriptions", "snapshots", "schemas")
"""Of resources with a policy."""
_PROJECT = "/v1/{project=projects/*}"
_TOPIC = "/v1/{topic=projects/*/topics/*}"
_SUBSCRIPTION = "/v1/{subscription=projects/*/subscriptions/*}"
_SCHEMA = "/v1/{name=projects/*/schemas/*}"
_SNAPSHOT = "/v1/{snapshot=projects/*/snapshots/*}"
_OF_ANY_KIND = "/v1/{resource=projects/*/KIND/*}"


def publish(service: PubsubService, request: wire.Message) -> wire.Message:
    topic = service.topic(request.topic)
    check_publish(request.messages, request_bytes=request.ByteSize())
    schemas.hold_to_schema(service, topic, request.messages)
    return wire.PublishResponse(message_ids=service.publish(request.topic, request.messages))


async def pull(service: PubsubService, request: wire.Message, remaining_s: float) -> wire.Message:
    if request.max_messages < 1:
        raise InvalidArgument(
            f"The value for max_messages is too small. You passed {request.max_messages} in the request, "
            "but the minimum value is 1."
        )
    began = time.monotonic()
    wait_s = 0.0 if request.return_immediately else min(MAX_PULL_WAIT_S, remaining_s - PULL_MARGIN_S)
    deliveries = await _pull(
        service, request.subscription, request.max_messages, until=began + wait_s, gone=began + remaining_s
    )
    return wire.PullResponse(received_messages=deliveries)


async def _pull(
    service: PubsubService, name: str, count: int, *, until: float, gone: float
) -> list[wire.Message]:
    """The messages available by `until`; none after `gone`, when the caller has left and would hold their leases."""
    while True:
        if time.monotonic() >= gone:
            return []
        subscription = service.subscription(name)
        check_attached(subscription)
        deadline_s = subscription.config.ack_deadline_seconds
        holder = Holder(deadline_s=deadline_s, batch_bytes=MAX_PULL_BYTES)
        deliveries = service.take(subscription, holder, count=count)
        left_s = until - time.monotonic()
        if deliveries or left_s <= 0:
            return deliveries
        await subscription.changed(left_s)


def acknowledge(service: PubsubService, request: wire.Message) -> wire.Message:
    service.acknowledge(service.subscription(request.subscription), request.ack_ids)
    return resources.EMPTY


def modify_deadline(service: PubsubService, request: wire.Message) -> wire.Message:
    seconds = request.ack_deadline_seconds
    if not 0 <= seconds <= MAX_ACK_DEADLINE_S:
        raise InvalidArgument(
            f"Invalid ack_deadline_seconds {seconds}: it must be from 0 to {MAX_ACK_DEADLINE_S}."
        )
    subscription = service.subscription(request.subscription)
    service.modify_deadline(subscription, [(ack_id, seconds) for ack_id in request.ack_ids])
    return resources.EMPTY


METHODS: Mapping[str, Mapping[str, tuple[str, Handler]]] = {
    "google.pubsub.v1.Publisher": {
        "CreateTopic": ("PUT /v1/{name=projects/*/topics/*}", resources.create_topic),
        "GetTopic": (f"GET {_TOPIC}", lambda service, request: service.topic(request.topic)),
        "ListTopics": (f"GET {_PROJECT}/topics", resources.list_topics),
        "ListTopicSubscriptions": (f"GET {_TOPIC}/subscriptions", resources.list_topic_subscriptions),
        "UpdateTopic": ("PATCH /v1/{topic.name=projects/*/topics/*}", resources.update_topic),
        "DeleteTopic": (f"DELETE {_TOPIC}", resources.delete_topic),
        "ListTopicSnapshots": (f"GET {_TOPIC}/snapshots", resources.list_topic_snapshots),
        "DetachSubscription": (f"POST {_SUBSCRIPTION}:detach", resources.detach_subscription),
        "Publish": (f"POST {_TOPIC}:publish", publish),
    },
    "google.pubsub.v1.Subscriber": {
        "CreateSubscription": ("PUT /v1/{name=projects/*/subscriptions/*}", resources.create_subscription),
        "GetSubscription": (
            f"GET {_SUBSCRIPTION}",
            lambda service, request: service.subscription(request.subscription).config,
        ),
        "UpdateSubscription": (
            "PATCH /v1/{subscription.name=projects/*/subscriptions/*}",
            resources.update_subscription,
        ),
        "ListSubscriptions": (f"GET {_PROJECT}/subscriptions", resources.list_subscriptions),
        "DeleteSubscription": (f"DELETE {_SUBSCRIPTION}", resources.delete_subscription),
        "CreateSnapshot": ("PUT /v1/{name=projects/*/snapshots/*}", resources.create_snapshot),
        "GetSnapshot": (f"GET {_SNAPSHOT}", lambda service, request: service.snapshot(request.snapshot)),
        "UpdateSnapshot": ("PATCH /v1/{snapshot.name=projects/*/snapshots/*}", resources.update_snapshot),
        "ListSnapshots": (f"GET {_PROJECT}/snapshots", resources.list_snapshots),
        "DeleteSnapshot": (f"DELETE {_SNAPSHOT}", resources.delete_snapshot),
        "Seek": (f"POST {_SUBSCRIPTION}:seek", resources.seek),
        "Pull": (f"POST {_SUBSCRIPTION}:pull", pull),
        "Acknowledge": (f"POST {_SUBSCRIPTION}:acknowledge", acknowledge),
        "ModifyAckDeadline": (f"POST {_SUBSCRIPTION}:modifyAckDeadline", modify_deadline),
    },
    "google.iam.v1.IAMPolicy": {
        "GetIamPolicy": (f"GET {_OF_ANY_KIND}:getIamPolicy", policies.get_policy),
        "SetIamPolicy": (f"POST {_OF_ANY_KIND}:setIamPolicy", policies.set_policy),
        "TestIamPermissions": (f"POST {_OF_ANY_KIND}:testIamPermissions", policies.test_permissions),
    },
    "google.pubsub.v1.SchemaService": {
        "CreateSchema": ("POST /v1/{parent=projects/*}/schemas", schemas.create_schema),
        "GetSchema": (f"GET {_SCHEMA}", schemas.get_schema),
        "ListSchemas": ("GET /v1/{parent=projects/*}/schemas", schemas.list_schemas),
        "ListSchemaRevisions": (f"GET {_SCHEMA}:listRevisions", schemas.list_schema_revisions),
        "CommitSchema": (f"POST {_SCHEMA}:commit", schemas.commit_schema),
        "RollbackSchema": (f"POST {_SCHEMA}:rollback", schemas.rollback_schema),
        "DeleteSchemaRevision": (f"DELETE {_SCHEMA}:deleteRevision", schemas.delete_schema_revision),
        "DeleteSchema": (f"DELETE {_SCHEMA}", schemas.delete_schema),
        "ValidateSchema": ("POST /v1/{parent=projects/*}/schemas:validate", schemas.validate_schema),
        "ValidateMessage": ("POST /v1/{parent=projects/*}/schemas:validateMessage", schemas.validate_message),
    },
}
"""Every method except StreamingPull, by service and name: its rule of google/pubsub/v1/*.proto, and its handler.

In a rule, `KIND` stands for each of KINDS.
"""
