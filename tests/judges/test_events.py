"""The data of every event that the local stack makes, and of those that tests give the functions, is of Google's types."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.core.fuzz import seeds
from tests.e2e.data_events import data_event
from tests.judges.discovery import Side, api
from tests.judges.events import FINALIZED, PUBLISHED, event_faults
from trainstack.events.cloudevent import Message, from_message

MESSAGE: dict[str, Any] = {
    "message": {
        "data": base64.b64encode(b"x").decode(),
        "messageId": "1",
        "publishTime": "2026-01-01T00:00:00Z",
    },
    "subscription": "projects/p/subscriptions/s",
}
OBJECT = {"bucket": "b", "name": "n", "size": "3", "timeCreated": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("event_type", "data", "words"),
    [
        (FINALIZED, OBJECT, ""),
        (FINALIZED, {**OBJECT, "sizes": "3"}, 'no field named "sizes"'),
        (FINALIZED, {**OBJECT, "size": "3.5"}, "Failed to parse size field"),
        (FINALIZED, {**OBJECT, "timeCreated": "yesterday"}, "Failed to parse timeCreated field"),
        (PUBLISHED, MESSAGE, ""),
        (PUBLISHED, {**MESSAGE, "attempt": 1}, 'no field named "attempt"'),
        (PUBLISHED, {**MESSAGE, "message": {"attributes": {"a": 1}}}, "1 is not of type 'string'"),
        (PUBLISHED, {**MESSAGE, "message": {"data": "no base64!"}}, "'no base64!' does not match"),
        (
            PUBLISHED,
            {**MESSAGE, "message": {**MESSAGE["message"], "message_id": "1", "publish_times": "x"}},
            "publish_times",
        ),
    ],
)
def test_data_of_another_form_is_a_fault(event_type: str, data: object, words: str) -> None:
    faults = event_faults(event_type, data)
    assert words in str(faults)
    assert bool(faults) == bool(words)


@pytest.mark.parametrize(("data", "attempt"), [(b"x", None), (b"", 3)])
def test_a_message_with_both_spellings_is_sound_in_either(data: bytes, attempt: int | None) -> None:
    message = Message(
        data=data, attributes={"k": "v"}, message_id="1", publish_time=datetime(2026, 1, 1, tzinfo=UTC),
        ordering_key="o", delivery_attempt=attempt,
    )  # fmt: skip
    event = from_message(
        message, topic_name="projects/p/topics/t", subscription_name="projects/p/subscriptions/s"
    )
    assert event_faults(event.headers["ce-type"], json.loads(event.body)) == []


@pytest.mark.parametrize(
    ("event_type", "data"),
    [
        *((FINALIZED, data) for data in seeds.UPLOADS),
        *((PUBLISHED, data) for data in seeds.MESSAGES),
        (FINALIZED, json.loads(data_event("b", "n", 1).body)),
    ],
)
def test_what_tests_give_the_functions_is_sound(event_type: str, data: object) -> None:
    assert event_faults(event_type, data) == []


@pytest.mark.parametrize("entry", seeds.LOG_ENTRIES)
def test_the_log_entries_that_tests_give_the_functions_are_sound(entry: object) -> None:
    assert api("logging.v2").faults("LogEntry", entry, Side.ANSWER) == []
