"""A message becomes exactly the request that Eventarc sends."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainstack.events.cloudevent import Message, NotANotificationError, from_message, from_notification

WHEN = datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
TOPIC = "projects/p1/topics/t1"
SUBSCRIPTION = "projects/p1/subscriptions/eventarc-us-central1-f-sub"
NOTIFICATION = {
    "notificationConfig": "projects/_/buckets/b1/notificationConfigs/1",
    "eventType": "OBJECT_FINALIZE",
    "payloadFormat": "JSON_API_V1",
    "bucketId": "b1",
    "objectId": "configs/a.yaml",
    "objectGeneration": "1700000000000000",
    "eventTime": "2026-01-01T00:00:00.123456Z",
}


def notification(**attributes: str) -> Message:
    return Message(
        data=b'{"kind":"storage#object"}',
        attributes={**NOTIFICATION, **attributes},
        message_id="11147091835367200",
        publish_time=WHEN,
    )


def test_a_finalized_object_has_the_headers_that_eventarc_sends_and_its_resource_as_body() -> None:
    event = from_notification(notification())
    assert event.headers == {
        "ce-id": "11147091835367200",
        "ce-source": "//storage.googleapis.com/projects/_/buckets/b1",
        "ce-subject": "objects/configs/a.yaml",
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.storage.object.v1.finalized",
        "ce-time": "2026-01-01T00:00:00.123456Z",
        "ce-bucket": "b1",
        "Content-Type": "application/json",
    }
    assert event.body == b'{"kind":"storage#object"}'


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("a b", "objects/a%20b"),
        ("grün.yaml", "objects/gr%C3%BCn.yaml"),
        ("a\r\nce-type: forged", "objects/a%0D%0Ace-type:%20forged"),
        ("50%.yaml", "objects/50%25.yaml"),
        ("a+b&c=d,e;f", "objects/a+b&c=d,e;f"),
    ],
)
def test_the_name_of_an_object_is_percent_encoded(name: str, subject: str) -> None:
    assert from_notification(notification(objectId=name)).headers["ce-subject"] == subject


@given(st.text(min_size=1))
def test_no_object_name_can_add_a_header(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate is not a valid name
        return
    value = from_notification(notification(objectId=name)).headers["ce-subject"]
    assert value.isascii()
    assert value.isprintable()
    assert " " not in value


def test_a_message_other_than_a_notification_is_refused_with_what_it_lacks() -> None:
    message = Message(data=b"x", attributes={"bucketId": "b1"}, message_id="7", publish_time=WHEN)
    with pytest.raises(NotANotificationError, match=r"Message 7 .*'eventType', 'objectId', 'eventTime'"):
        from_notification(message)


def test_a_published_message_has_both_spellings_of_id_and_time() -> None:
    message = Message(data=b'{"a":1}', attributes={"k": "v"}, message_id="111", publish_time=WHEN)
    event = from_message(message, topic_name=TOPIC, subscription_name=SUBSCRIPTION)
    assert event.headers == {
        "ce-id": "111",
        "ce-source": "//pubsub.googleapis.com/projects/p1/topics/t1",
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "ce-time": "2026-01-01T00:00:00.123Z",
        "Content-Type": "application/json",
    }
    assert json.loads(event.body) == {
        "message": {
            "data": "eyJhIjoxfQ==",
            "attributes": {"k": "v"},
            "messageId": "111",
            "message_id": "111",
            "publishTime": "2026-01-01T00:00:00.123Z",
            "publish_time": "2026-01-01T00:00:00.123Z",
        },
        "subscription": SUBSCRIPTION,
    }


def test_ordering_key_and_delivery_attempt_appear_only_when_there_are_any_and_times_are_in_utc() -> None:
    message = Message(
        data=b"",
        attributes={"k": "v"},
        message_id="1",
        publish_time=datetime(2026, 6, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        ordering_key="o",
        delivery_attempt=2,
    )
    event = from_message(message, topic_name=TOPIC, subscription_name=SUBSCRIPTION)
    body = json.loads(event.body)
    assert event.headers["ce-time"] == "2026-06-01T10:00:00.000Z"
    assert body["deliveryAttempt"] == 2
    assert body["message"]["orderingKey"] == "o"
    assert "data" not in body["message"]
