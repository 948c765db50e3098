"""An event has one key in every delivery, before and after it was a dead letter, and no other event has it."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from trainmaster.orchestrator.core.events.envelope import (
    REPLAYED_ID,
    REPLAYED_PUBLISH_TIME,
    Envelope,
    event_key,
    pubsub_message,
)
from trainmaster.orchestrator.core.requests.incoming import parse_message

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PUBLISHED = "2026-03-01T11:00:00.123Z"


def envelope(data: object, event_id: str = "9") -> Envelope:
    return Envelope(id=event_id, type="t", source="s", subject="", time=NOW, received_at=NOW, data=data)


def message(
    data: bytes = b"x", published: str = PUBLISHED, message_id: str = "1", **attributes: str
) -> Envelope:
    content: dict[str, Any] = {
        "messageId": message_id,
        "publishTime": published,
        "data": base64.b64encode(data).decode(),
        "attributes": attributes,
    }
    return envelope({"message": content}, message_id)


def replayed(**changes: Any) -> Envelope:
    attributes = {REPLAYED_ID: "1", REPLAYED_PUBLISH_TIME: "2026-03-01T11:00:00.123456789Z"}
    return message(published="2026-03-02T00:00:00Z", message_id="77", **{**attributes, **changes})


def test_a_replayed_message_is_the_message_that_it_was() -> None:
    before, after = pubsub_message(message(kind="a")), pubsub_message(replayed(kind="a"))
    assert (after.message_id, dict(after.attributes), after.data) == (before.message_id, {"kind": "a"}, b"x")
    assert parse_message(replayed()).run_id == parse_message(message()).run_id
    assert parse_message(message(message_id="2")).run_id != parse_message(message()).run_id
    assert parse_message(replayed()).source.message_id == "1"
    assert event_key(replayed()) == event_key(message())


def test_a_replayed_message_with_an_unreadable_time_keeps_its_own() -> None:
    found = pubsub_message(replayed(**{REPLAYED_PUBLISH_TIME: "yesterday"}))
    assert found.publish_time == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2026-03-02T00:00:01Z"])
def test_a_replayed_message_was_published_before_and_not_long_before(time: str) -> None:
    found = pubsub_message(replayed(**{REPLAYED_PUBLISH_TIME: time}))
    assert found.publish_time == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "other",
    [message(b"y"), message(published="2026-03-01T11:00:00.124Z"), message(kind="a")],
    ids=["content", "time", "attributes"],
)
def test_another_message_has_another_key(other: Envelope) -> None:
    assert event_key(other) != event_key(message())


def test_an_object_is_known_by_its_generation() -> None:
    first = {"bucket": "inbox", "name": "requests/a.yaml", "generation": "1", "size": "8"}
    assert event_key(envelope(first)) == event_key(envelope({**first, "size": "9"}, "other delivery"))
    assert event_key(envelope(first)) != event_key(envelope({**first, "generation": "2"}))
