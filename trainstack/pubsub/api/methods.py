"""The methods of the four services: name, HTTP rule and handler."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from trainstack.errors import InvalidArgumentError
from trainstack.pubsub import policies, resources, schemas, wire
from trainstack.pubsub.checks.settings import MAX_ACK_DEADLINE_S
from trainstack.pubsub.delivery.backlog import Holder
from trainstack.pubsub.service import PubsubService, check_attached
from trainstack.transcoding.method import Services, method_from

# An empty pull responds shortly before the caller's deadline would turn it into an error.
MAX_PULL_WAIT_S = 60.0
PULL_MARGIN_S = 0.5
MAX_PULL_BYTES = 10_000_000

# https://cloud.google.com/pubsub/quotas#resource_limits and …/docs/reference/rest/v1/PubsubMessage
MAX_REQUEST_BYTES = 10_000_000
MAX_MESSAGES = 1000
MAX_ATTRIBUTES = 100
MAX_ATTRIBUTE_KEY_BYTES = 256
MAX_ATTRIBUTE_VALUE_BYTES = 1024
MAX_ORDERING_KEY_BYTES = 1024

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
    _check_publish(request.messages, request_bytes=request.ByteSize())
    schemas.hold_to_schema(service, topic, request.messages)
    return wire.PublishResponse(message_ids=service.publish(request.topic, request.messages))


def _check_publish(messages: Sequence[wire.Message], *, request_bytes: int) -> None:
    """Refuse what the service would refuse, naming every faulty message.

    Raises:
        InvalidArgumentError: too many, too large or empty messages, or attributes outside their limits.
    """
    faults = [f"messages[{index}]: {fault}" for index, one in enumerate(messages) for fault in _faults(one)]
    if not messages:
        faults.append(
            "The value for message_count is too small. You passed 0 in the request, but the minimum value is 1."
        )
    for what, amount, most in (
        ("message_count", len(messages), MAX_MESSAGES),
        ("request_size", request_bytes, MAX_REQUEST_BYTES),
    ):
        if amount > most:
            faults.append(
                f"The value for {what} is too large. You passed {amount} in the request, "
                f"but the maximum value is {most}."
            )
    if faults:
        raise InvalidArgumentError(" ".join(faults))


def _faults(message: wire.Message) -> list[str]:
    faults: list[str] = []
    if not message.data and not message.attributes:
        faults.append("it is empty; a message must contain either non-empty data, or at least one attribute.")
    if len(message.attributes) > MAX_ATTRIBUTES:
        faults.append(f"it has {len(message.attributes)} attributes; at most {MAX_ATTRIBUTES} are allowed.")
    for key, value in message.attributes.items():
        if not key or len(key.encode()) > MAX_ATTRIBUTE_KEY_BYTES:
            faults.append(f"attribute key {key[:40]!r} must have 1 to {MAX_ATTRIBUTE_KEY_BYTES} bytes.")
        if key.startswith("goog"):
            faults.append(f"attribute key {key[:40]!r} must not begin with 'goog'.")
        if len(value.encode()) > MAX_ATTRIBUTE_VALUE_BYTES:
            faults.append(f"attribute {key[:40]!r} has a value over {MAX_ATTRIBUTE_VALUE_BYTES} bytes.")
    if len(message.ordering_key.encode()) > MAX_ORDERING_KEY_BYTES:
        faults.append(f"the ordering key has more than {MAX_ORDERING_KEY_BYTES} bytes.")
    return faults


async def pull(service: PubsubService, request: wire.Message, remaining_s: float) -> wire.Message:
    if request.max_messages < 1:
        raise InvalidArgumentError(
            f"The value for max_messages is too small. You passed {request.max_messages} in the request, "
            "but the minimum value is 1."
        )
    began = time.monotonic()
    wait_s = 0.0 if request.return_immediately else min(MAX_PULL_WAIT_S, remaining_s - PULL_MARGIN_S)
    # Not after `remaining_s`, when the caller has left: its messages would be leased for nothing.
    while time.monotonic() < began + remaining_s:
        subscription = service.subscription(request.subscription)
        check_attached(subscription)
        deadline_s = subscription.config.ack_deadline_seconds
        holder = Holder(deadline_s=deadline_s, batch_bytes=MAX_PULL_BYTES)
        deliveries = service.take(subscription, holder, count=request.max_messages)
        left_s = began + wait_s - time.monotonic()
        if deliveries or left_s <= 0:
            return wire.PullResponse(received_messages=deliveries)
        await subscription.changed(left_s)
    return wire.PullResponse()


def acknowledge(service: PubsubService, request: wire.Message) -> wire.Message:
    service.acknowledge(service.subscription(request.subscription), request.ack_ids)
    return resources.EMPTY


def modify_deadline(service: PubsubService, request: wire.Message) -> wire.Message:
    seconds = request.ack_deadline_seconds
    if not 0 <= seconds <= MAX_ACK_DEADLINE_S:
        raise InvalidArgumentError(
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
_BODIES = {"CreateSchema": "schema"}


def services() -> Services:
    """The calls over REST. Fields that are not in the path are in the body, if there is one and it is not one field."""
    return {
        service: [
            method_from(
                of_kind,
                name,
                *wire.types_of(name),
                body=_BODIES.get(name, "*" if rule.startswith("P") else ""),
            )
            for name, (rule, _) in methods.items()
            for of_kind in dict.fromkeys(rule.replace("KIND", kind) for kind in KINDS)
        ]
        for service, methods in METHODS.items()
    }
