"""Pub/Sub messages as the CloudEvents that a function receives: binary mode over HTTP. Pure.

Sources: https://cloud.google.com/eventarc/docs/cloudevents,
https://github.com/googleapis/google-cloudevents and
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

FINALIZE = "OBJECT_FINALIZE"
FINALIZED_TYPE = "google.cloud.storage.object.v1.finalized"
PUBLISHED_TYPE = "google.cloud.pubsub.topic.v1.messagePublished"

# A header may carry printable ASCII unescaped, except the space, `"` and `%` (HTTP binding, section 3.1.3.2).
_PLAIN_IN_HEADER = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class NotANotificationError(Exception):
    """The message is not a Cloud Storage notification; redelivery cannot help."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """The part of a received message that an event has.

    `delivery_attempt` counts from 1; None where the subscription has no dead-letter policy.
    """

    data: bytes
    attributes: Mapping[str, str]
    message_id: str
    publish_time: datetime
    ordering_key: str = ""
    delivery_attempt: int | None = None


@dataclass(frozen=True, kw_only=True)
class CloudEvent:
    """One HTTP request's headers and body."""

    headers: Mapping[str, str]
    body: bytes


def from_notification(message: Message) -> CloudEvent:
    """The CloudEvent for a Cloud Storage notification; its body is the object resource.

    Raises:
        NotANotificationError: a notification's attributes or its payload are missing.
    """
    attributes = message.attributes
    missing = [
        name for name in ("eventType", "bucketId", "objectId", "eventTime") if not attributes.get(name)
    ]
    if missing or attributes["eventType"] != FINALIZE or not message.data:
        raise NotANotificationError(
            f"Message {message.message_id} is not a notification of a finalized object: it lacks {missing or 'nothing'}, its "
            f"event type is {attributes.get('eventType')!r}, and its payload has {len(message.data)} bytes."
        )
    bucket = attributes["bucketId"]
    headers = {
        "id": message.message_id,
        "source": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "type": FINALIZED_TYPE,
        "time": attributes["eventTime"],
        "subject": f"objects/{attributes['objectId']}",
        "bucket": bucket,
    }
    return CloudEvent(headers=_binary(headers), body=message.data)


def from_message(message: Message, *, topic_name: str, subscription_name: str) -> CloudEvent:
    """The CloudEvent for a message on a topic.

    The id and the time appear in both spellings. Empty data, attributes and ordering keys are omitted, as in
    protobuf's JSON.
    """
    when = _rfc3339(message.publish_time)
    content = {
        "data": base64.b64encode(message.data).decode(),
        "attributes": dict(message.attributes),
        "orderingKey": message.ordering_key,
        "messageId": message.message_id,
        "message_id": message.message_id,
        "publishTime": when,
        "publish_time": when,
    }
    content = {name: value for name, value in content.items() if value}
    body: dict[str, object] = {"message": content, "subscription": subscription_name}
    if message.delivery_attempt is not None:
        body["deliveryAttempt"] = message.delivery_attempt
    headers = {
        "id": message.message_id,
        "source": f"//pubsub.googleapis.com/{topic_name}",
        "type": PUBLISHED_TYPE,
        "time": when,
    }
    return CloudEvent(headers=_binary(headers), body=json.dumps(body).encode())


def _binary(attributes: Mapping[str, str]) -> dict[str, str]:
    """Header values are percent-encoded where HTTP cannot carry them: an object's name may hold a line break."""
    headers = {f"ce-{name}": quote(value, safe=_PLAIN_IN_HEADER) for name, value in attributes.items()}
    return {**headers, "ce-specversion": "1.0", "Content-Type": "application/json"}


def _rfc3339(moment: datetime) -> str:
    """Milliseconds, as Pub/Sub writes the publish time."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
