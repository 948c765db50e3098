"""Events as Google's own types take them: https://github.com/googleapis/google-cloudevents.

The types' release, 0.14.0, is of 2024-12, and protobuf's JSON is lenient about bytes and texts. So the discovery
documents of Cloud Storage and Pub/Sub judge, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from google.events.cloud.pubsub_v1 import MessagePublishedData
from google.events.cloud.storage_v1 import StorageObjectData
from google.protobuf.json_format import ParseDict, ParseError

from tests.judges.discovery import Side, api

FINALIZED = "google.cloud.storage.object.v1.finalized"
PUBLISHED = "google.cloud.pubsub.topic.v1.messagePublished"
TWICE = {"messageId": "message_id", "publishTime": "publish_time"}
"""What Eventarc writes in both spellings: https://cloud.google.com/eventarc/docs/cloudevents (read 2026-11)"""
NEWER = frozenset({"contexts", "customTime", "timeFinalized"})
"""Fields of an object that Cloud Storage has and the type of its event lacks."""


def event_faults(event_type: str, data: Any) -> list[str]:
    """Why Google's types do not take the data of an event, unknown fields included; empty for sound data."""
    if event_type == FINALIZED:
        known = {name: value for name, value in data.items() if name not in NEWER}
        return [
            *api("storage.v1").faults("Object", data, Side.ANSWER),
            *_type_faults(StorageObjectData, known),
        ]
    assert event_type == PUBLISHED, event_type
    message = data.get("message", {})
    return [
        fault
        for each in _in_one_spelling(message)
        for fault in (
            *_type_faults(MessagePublishedData, {**data, "message": each}),
            *api("pubsub.v1").faults("PubsubMessage", _in_camel_case(each), Side.ANSWER),
        )
    ]


def _type_faults(kind: Any, data: Mapping[str, Any]) -> Iterator[str]:  # Any: the types have no common one
    try:
        ParseDict(data, kind.pb()(), ignore_unknown_fields=False)
    except ParseError as wrong:
        yield f"{kind.__name__}: {wrong}"


def _in_one_spelling(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message that has names in both spellings twice, each time in one."""
    both = {one: other for one, other in TWICE.items() if {one, other} <= message.keys()}
    assert all(message[one] == message[other] for one, other in both.items()), message
    yield {name: value for name, value in message.items() if name not in both.values()}
    if both:
        yield {name: value for name, value in message.items() if name not in both}


def _in_camel_case(message: Mapping[str, Any]) -> dict[str, Any]:
    names = {snake: camel for camel, snake in TWICE.items()}
    return {names.get(name, name): value for name, value in message.items()}
