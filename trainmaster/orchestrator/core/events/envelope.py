"""Deliveries: a CloudEvent with plain values, the Pub/Sub message that it may carry, and the key that identifies both.

Pub/Sub forwards a message that keeps failing as a new message with a new id, and adds only its subscription and publish
time. The function logs the reason under the event's key, which a reader of the dead letter computes from the letter
itself: trainmaster/client/dead_letters/letter.py
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainmaster.orchestrator.core.documents.codec import parse_json, time_or
from trainmaster.orchestrator.core.errors import EventMalformed

REPLAYED_ID = "trainmaster_replayed_id"
REPLAYED_PUBLISH_TIME = "trainmaster_replayed_publish_time"
"""Attributes with which a message replayed from the dead letters keeps its original id and publish time.

Any publisher can set them. They give no new rights: `idempotency_key` names a run anyway, and an earlier time only
puts a run before others of its priority, by REPLAYED_WITHIN at most.
"""
DELIVERED_WITHIN = timedelta(days=1)
"""How long an event may be redelivered, as trainmaster/deploy/terraform/plan/main.tf sets it; Eventarc's default.

Source: https://cloud.google.com/eventarc/docs/retry-events
"""
REPLAYED_WITHIN = timedelta(days=62)
"""How long before its replay a message may have been published: dead letters are kept for 31 days at most, and
undelivered messages before that for another 31.
Source: https://cloud.google.com/pubsub/docs/subscription-properties#message_retention_duration
"""


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A CloudEvent. `time` is when the event happened, `received_at` when this delivery arrived."""

    id: str
    type: str
    source: str
    subject: str
    time: datetime
    received_at: datetime
    data: object


@dataclass(frozen=True, kw_only=True)
class PubsubMessage:
    """A Pub/Sub message; `data` is decoded."""

    message_id: str
    publish_time: datetime
    attributes: Mapping[str, str]
    data: bytes


def pubsub_message(envelope: Envelope) -> PubsubMessage:
    """The message inside the event; its id and time default to the event's.

    A message replayed from the dead letters has its original id, time and attributes.
    Source: https://cloud.google.com/eventarc/docs/cloudevents; both spellings of the keys occur.

    Raises:
        EventMalformed: the event does not hold a message, or its data is not base64.
    """
    message = envelope.data.get("message") if isinstance(envelope.data, Mapping) else None
    if not isinstance(message, Mapping):
        raise EventMalformed(f"event {envelope.id!r} of type {envelope.type!r} has no Pub/Sub message")
    attributes = message.get("attributes") or {}
    if not isinstance(attributes, Mapping):
        raise EventMalformed(f"the attributes of message {envelope.id!r} are not a mapping")
    try:
        data = base64.b64decode(str(message.get("data") or ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise EventMalformed(f"the data of message {envelope.id!r} is not valid base64: {error}") from error
    named = {str(key): str(value) for key, value in attributes.items()}
    published = message.get("publishTime") or message.get("publish_time")
    published_at = time_or(published, envelope.time)
    replayed_id = named.pop(REPLAYED_ID, "")
    replayed_time = named.pop(REPLAYED_PUBLISH_TIME, "")
    return PubsubMessage(
        message_id=replayed_id or str(message.get("messageId") or message.get("message_id") or envelope.id),
        publish_time=first_published(time_or(replayed_time, published_at), published_at),
        attributes=named,
        data=data,
    )


def message_document(message: PubsubMessage, what: str) -> Mapping[str, object]:
    """The JSON object in the message.

    Raises:
        EventMalformed: it holds something else.
    """
    try:
        document = parse_json(message.data)
    except ValueError as error:
        raise malformed_message(message, f"is not JSON, so not {what}: {error}") from error
    if not isinstance(document, Mapping):
        raise malformed_message(message, f"holds a {type(document).__name__} where {what} was expected")
    return document


def malformed_message(message: PubsubMessage, problem: str) -> EventMalformed:
    """The error of a message of which `problem` says what it is or has."""
    return EventMalformed(f"message {message.message_id!r} {problem}")


def first_published(replayed_at: datetime, published_at: datetime) -> datetime:
    """When a message was first published: `replayed_at`, which any publisher can set, if it is plausible."""
    return replayed_at if timedelta() <= published_at - replayed_at <= REPLAYED_WITHIN else published_at


KEY_CHARS = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_key(envelope: Envelope) -> str:
    """The same for every delivery of an event, even after a replay; empty if it is neither a message nor an object's.

    Bucket, name and generation identify an object's event; the data, the attributes and the publish time in
    milliseconds, which is all the precision that Eventarc forwards, identify a message.
    """
    data = envelope.data
    if not isinstance(data, Mapping):
        return ""
    if "message" not in data:
        found = [data.get(name) for name in ("bucket", "name", "generation")]
        return object_key(*map(str, found)) if all(found) else ""
    try:
        message = pubsub_message(envelope)
    except EventMalformed:
        return ""
    return message_key(message.publish_time, message.data, message.attributes)


def object_key(bucket: str, name: str, generation: str) -> str:
    """The key of an object's event."""
    return _digest(["object", bucket, name, generation])


def message_key(publish_time: datetime, data: bytes, attributes: Mapping[str, str]) -> str:
    """The key of a message, with the attributes of its first publication."""
    published_ms = (publish_time - _EPOCH) // timedelta(milliseconds=1)
    return _digest(["message", published_ms, data.hex(), sorted(attributes.items())])


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:KEY_CHARS]
