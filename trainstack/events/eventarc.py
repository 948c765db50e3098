"""The transport of a trigger, as Eventarc builds it in a project: topic, subscription, bucket notification.

A bucket's events go through a topic that belongs to the trigger, and are delivered from there like any
message.
"""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from google.api_core.exceptions import AlreadyExists
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.pubsub_v1 import DeadLetterPolicy, ExpirationPolicy, RetryPolicy, Subscription

from trainstack.events.backoff import Backoff
from trainstack.events.cloudevent import FINALIZE
from trainstack.events.rest import call
from trainstack.functions.function import BucketTrigger, Function, TopicTrigger

RETENTION = timedelta(hours=24)
"""How long an undelivered event is kept: https://cloud.google.com/eventarc/docs/retry-events"""

_ACK_DEADLINES_S = range(10, 601)


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Where a function's events come from and where dead letters go; all are full resource names."""

    topic_name: str
    subscription_name: str
    dead_letter_topic_name: str | None = None


def transport_of(function: Function, *, project: str, region: str) -> Transport:
    """The resource names of a function's trigger.

    They never change, so events wait while the function is down.
    """
    transport = f"eventarc-{region}-{function.name}"
    match function.trigger:
        case BucketTrigger():
            topic = transport
        case TopicTrigger(topic=topic):
            pass
    dead = function.dead_letter
    return Transport(
        topic_name=f"projects/{project}/topics/{topic}",
        subscription_name=f"projects/{project}/subscriptions/{transport}-sub",
        dead_letter_topic_name=f"projects/{project}/topics/{dead.topic}" if dead else None,
    )


def subscription_of(function: Function, transport: Transport, backoff: Backoff) -> Subscription:
    """The subscription to create. Without `retry` there is only one delivery, so the pauses do not matter."""
    return Subscription(
        name=transport.subscription_name,
        topic=transport.topic_name,
        ack_deadline_seconds=min(max(function.timeout_s, _ACK_DEADLINES_S[0]), _ACK_DEADLINES_S[-1]),
        message_retention_duration=_duration(RETENTION.total_seconds()),
        expiration_policy=ExpirationPolicy(),
        retry_policy=RetryPolicy(
            minimum_backoff=_duration(backoff.min_s), maximum_backoff=_duration(backoff.max_s)
        ),
        dead_letter_policy=DeadLetterPolicy(
            dead_letter_topic=transport.dead_letter_topic_name,
            max_delivery_attempts=function.dead_letter.max_attempts,
        )
        if function.dead_letter
        else None,
    )


def ensure_topic(publisher: PublisherClient, topic_name: str) -> None:
    """Create the topic unless it exists."""
    try:
        publisher.create_topic(name=topic_name)
    except AlreadyExists:
        return


def ensure_subscription(subscriber: SubscriberClient, subscription: Subscription) -> None:
    """Create the subscription, or update an existing one's policies and deadline; its backlog is kept."""
    try:
        subscriber.create_subscription(request=subscription)
    except AlreadyExists:
        mask = FieldMask(paths=["retry_policy", "dead_letter_policy", "ack_deadline_seconds"])
        subscriber.update_subscription(subscription=subscription, update_mask=mask)


def ensure_notification(storage_url: str, bucket: str, topic_name: str) -> None:
    """Have the bucket notify the topic of every finalized object, unless it already does.

    Raises:
        CallRefusedError: the bucket does not exist, or the storage server does not support notifications.
    """
    path = f"/storage/v1/b/{quote(bucket, safe='')}/notificationConfigs"
    topic = f"//pubsub.googleapis.com/{topic_name}"
    existing = (call("GET", storage_url, path) or {}).get("items", [])
    if any(config.get("topic") == topic for config in existing):
        return
    wanted = {"topic": topic, "payload_format": "JSON_API_V1", "event_types": [FINALIZE]}
    call("POST", storage_url, path, wanted)


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration
