"""What an event is known by on both sides of the dead-letter topic.

Pub/Sub forwards a message that kept failing as a new message with a new id, and adds only where it came from and
when it was published; the reason is the function's to tell. It tells it in its log, under this key, which a reader
of the dead letter computes from the letter itself: `trainmaster/client/dead_letters/letter.py`.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope, pubsub_message

KEY_CHARS = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_key(envelope: Envelope) -> str:
    """The same for every delivery of an event, also after a replay; empty for what is neither message nor object.

    An object's event is known by bucket, name and generation, a message by its bytes, its attributes and the
    millisecond of its publication: Eventarc tells a function no more of it than milliseconds.
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
    """The key of a message, with the attributes that it had when it was published first."""
    published_ms = (publish_time - _EPOCH) // timedelta(milliseconds=1)
    return _digest(["message", published_ms, data.hex(), sorted(attributes.items())])


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:KEY_CHARS]
