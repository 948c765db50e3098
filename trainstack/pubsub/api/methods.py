"""The methods of the three services: name, request class and handler."""

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from google.iam.v1 import iam_policy_pb2

from trainstack.pubsub import wire
from trainstack.pubsub.checks.publishing import check_publish
from trainstack.pubsub.checks.settings import MAX_ACK_DEADLINE_S
from trainstack.pubsub.delivery.backlog import Holder
from trainstack.pubsub.errors import InvalidArgument
from trainstack.pubsub.policies import Policies
from trainstack.pubsub.resources import EMPTY, Snapshots, Subscriptions, Topics
from trainstack.pubsub.schemas import Schemas, hold_to_schema
from trainstack.pubsub.service import PubsubService, check_attached

# An empty pull responds shortly before the caller's deadline would turn it into an error.
MAX_PULL_WAIT_S = 60.0
PULL_MARGIN_S = 0.5
MAX_PULL_BYTES = 10_000_000

Method: TypeAlias = Callable[..., wire.Message]
"""Handles a request; a coroutine function also receives the seconds left until the caller's deadline."""

REQUESTS: Mapping[str, wire.MessageClass] = {
    "CreateTopic": wire.Topic,
    "CreateSubscription": wire.Subscription,
    "GetIamPolicy": iam_policy_pb2.GetIamPolicyRequest,
    "SetIamPolicy": iam_policy_pb2.SetIamPolicyRequest,
    "TestIamPermissions": iam_policy_pb2.TestIamPermissionsRequest,
}
"""Request classes that are not named after their method."""


def methods_of(service: PubsubService) -> Mapping[str, Mapping[str, Method]]:
    """Every supported method except StreamingPull, by service and name."""
    topics, subscriptions, messages = Topics(service), Subscriptions(service), Messages(service)
    snapshots, schemas, policies = Snapshots(service), Schemas(service), Policies(service)
    return {
        "google.pubsub.v1.Publisher": {
            "CreateTopic": topics.create,
            "GetTopic": lambda request: service.topic(request.topic),
            "ListTopics": topics.list,
            "ListTopicSubscriptions": topics.list_subscriptions,
            "UpdateTopic": topics.update,
            "DeleteTopic": topics.delete,
            "ListTopicSnapshots": snapshots.list_of_topic,
            "DetachSubscription": subscriptions.detach,
            "Publish": messages.publish,
        },
        "google.pubsub.v1.Subscriber": {
            "CreateSubscription": subscriptions.create,
            "GetSubscription": lambda request: service.subscription(request.subscription).config,
            "UpdateSubscription": subscriptions.update,
            "ListSubscriptions": subscriptions.list,
            "DeleteSubscription": subscriptions.delete,
            "CreateSnapshot": snapshots.create,
            "GetSnapshot": lambda request: service.snapshot(request.snapshot),
            "UpdateSnapshot": snapshots.update,
            "ListSnapshots": snapshots.list,
            "DeleteSnapshot": snapshots.delete,
            "Seek": subscriptions.seek,
            "Pull": messages.pull,
            "Acknowledge": messages.acknowledge,
            "ModifyAckDeadline": messages.modify_deadline,
        },
        "google.iam.v1.IAMPolicy": {
            "GetIamPolicy": policies.get,
            "SetIamPolicy": policies.set,
            "TestIamPermissions": policies.test,
        },
        "google.pubsub.v1.SchemaService": {
            "CreateSchema": schemas.create,
            "GetSchema": schemas.get,
            "ListSchemas": schemas.list,
            "ListSchemaRevisions": schemas.list_revisions,
            "CommitSchema": schemas.commit,
            "RollbackSchema": schemas.rollback,
            "DeleteSchemaRevision": schemas.delete_revision,
            "DeleteSchema": schemas.delete,
            "ValidateSchema": schemas.validate,
            "ValidateMessage": schemas.validate_message,
        },
    }


class Messages:
    """Publishing, pulling and acknowledging messages."""

    def __init__(self, service: PubsubService) -> None:
        self._service = service

    def publish(self, request: wire.Message) -> wire.Message:
        topic = self._service.topic(request.topic)
        check_publish(request.messages, request_bytes=request.ByteSize())
        hold_to_schema(self._service, topic, request.messages)
        return wire.PublishResponse(message_ids=self._service.publish(request.topic, request.messages))

    async def pull(self, request: wire.Message, remaining_s: float) -> wire.Message:
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
        return wire.PullResponse(received_messages=deliveries)

    async def _pull(self, name: str, count: int, *, until: float, gone: float) -> list[wire.Message]:
        """The messages available by `until`; none after `gone`, when the caller has left and would hold their leases."""
        while True:
            if time.monotonic() >= gone:
                return []
            subscription = self._service.subscription(name)
            check_attached(subscription)
            deadline_s = subscription.config.ack_deadline_seconds
            holder = Holder(deadline_s=deadline_s, batch_bytes=MAX_PULL_BYTES)
            deliveries = self._service.take(subscription, holder, count=count)
            left_s = until - time.monotonic()
            if deliveries or left_s <= 0:
                return deliveries
            await subscription.changed(left_s)

    def acknowledge(self, request: wire.Message) -> wire.Message:
        self._service.acknowledge(self._service.subscription(request.subscription), request.ack_ids)
        return EMPTY

    def modify_deadline(self, request: wire.Message) -> wire.Message:
        seconds = request.ack_deadline_seconds
        if not 0 <= seconds <= MAX_ACK_DEADLINE_S:
            raise InvalidArgument(
                f"Invalid ack_deadline_seconds {seconds}: it must be from 0 to {MAX_ACK_DEADLINE_S}."
            )
        subscription = self._service.subscription(request.subscription)
        self._service.modify_deadline(subscription, [(ack_id, seconds) for ack_id in request.ack_ids])
        return EMPTY
