"""A dead letter: the event it was, and the message that puts it back, as the function and the command know them."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.client.letters import OBJECT, PROJECT, PUBLISHED, forwarded, letter
from trainmaster.client.dead_letters.letter import NoSourceError, attributes_to_put_back, event_key
from trainmaster.orchestrator.core.events.envelope import KEY_CHARS, Envelope, pubsub_message
from trainmaster.orchestrator.core.events.envelope import event_key as key_of_function
from trainstack.events.cloudevent import Message, from_message, from_notification


def envelope_of(body: bytes) -> Envelope:
    now = datetime.now(UTC)
    return Envelope(
        id="1", type="t", source="s", subject="", time=now, received_at=now, data=json.loads(body)
    )


@pytest.mark.parametrize("attributes", [{}, {"kind": "ä", "idempotency_key": "k"}])
def test_a_message_has_the_key_that_the_function_gave_it(attributes: dict[str, str]) -> None:
    message = Message(data=b"\x00\xff", attributes=attributes, message_id="1", publish_time=PUBLISHED)
    event = from_message(message, topic_name="t", subscription_name="s")
    assert event_key(letter(forwarded(attributes), b"\x00\xff")) == key_of_function(envelope_of(event.body))


def test_an_objects_event_has_the_key_that_the_function_gave_it() -> None:
    body = b'{"bucket": "inbox", "name": "rules/a\\u001b[31m b.yaml", "generation": "17"}'
    event = from_notification(Message(data=body, attributes=OBJECT, message_id="1", publish_time=PUBLISHED))
    assert event_key(letter(forwarded(OBJECT), body)) == key_of_function(envelope_of(event.body))


def test_a_message_that_is_put_back_is_what_it_was_also_the_second_time() -> None:
    first = attributes_to_put_back(letter(forwarded({"kind": "a"})), "1")
    later = PUBLISHED + timedelta(days=1)
    second = attributes_to_put_back(letter(forwarded(first, later)), "999")
    for attributes in (first, second):
        again = Message(data=b"x", attributes=attributes, message_id="88", publish_time=later)
        event = from_message(again, topic_name="t", subscription_name="s")
        found = pubsub_message(envelope_of(event.body))
        assert (found.message_id, dict(found.attributes)) == ("1", {"kind": "a"})
        assert found.publish_time == PUBLISHED.replace(microsecond=123000)
        assert key_of_function(envelope_of(event.body)) == event_key(letter(forwarded({"kind": "a"})))


CLAIMED_TIMES = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+10:00",
    "1969-12-31T23:59:59.999999Z",
    "2026-02-28T12:00:00+02:00",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-10:00",
    "2026-02-28T12:00:00",
    "2026-02-28",
    "yesterday",
    "",
)


@pytest.mark.parametrize("claimed", CLAIMED_TIMES)
def test_a_claimed_time_is_believed_by_the_console_where_the_function_believes_it(claimed: str) -> None:
    attributes = {"kind": "a", "trainmaster_replayed_publish_time": claimed}
    message = Message(data=b"x", attributes=attributes, message_id="1", publish_time=PUBLISHED)
    event = from_message(message, topic_name="t", subscription_name="s")
    buried = letter(forwarded(attributes))
    assert event_key(buried) == key_of_function(envelope_of(event.body))
    again = Message(
        data=b"x", attributes=attributes_to_put_back(buried, "1"), message_id="2", publish_time=PUBLISHED
    )
    replayed = from_message(again, topic_name="t", subscription_name="s")
    assert event_key(buried) == key_of_function(envelope_of(replayed.body))


@given(
    some.dictionaries(
        some.sampled_from(
            [*forwarded(OBJECT), "trainmaster_replayed_id", "trainmaster_replayed_publish_time"]
        ),
        some.text() | some.datetimes().map(datetime.isoformat) | some.sampled_from(CLAIMED_TIMES),
    )
)
def test_whatever_a_letter_holds_it_is_read_and_says_since_when_its_failure_is_to_be_looked_for(
    attributes: dict[str, str],
) -> None:
    one = letter(attributes)
    assert len(event_key(one)) == KEY_CHARS
    assert datetime(1969, 12, 31, tzinfo=UTC) < one.failed_since < one.given_up_at
    assert one.deliveries is None or one.deliveries >= 0
    try:
        assert re.fullmatch(f"projects/{PROJECT}/subscriptions/[!-~]+", one.subscription_name)
    except NoSourceError as fault:
        assert str(fault).isprintable()  # noqa: PT017  # it need not be raised


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Project": "other-project"}, "a subscription of the project 'other-project', and only what those of 'p1'"),
        ({"": "evil\x1b]0;pwned\x07"}, r"names the subscription 'evil\x1b]0;pwned\x07', which cannot be one"),
        ({"": "../topics/\u202ex"}, r"'\u202ex', which cannot be one"),
        ({"": ""}, "does not name the subscription"),
    ],
)  # fmt: skip
def test_a_letter_that_names_no_subscription_of_its_project_has_no_source(
    changes: dict[str, str], reason: str
) -> None:
    named = {f"CloudPubSubDeadLetterSourceSubscription{key}": value for key, value in changes.items()}
    with pytest.raises(NoSourceError) as refusal:
        _ = letter({**forwarded({}), **named}).subscription_name
    assert reason in str(refusal.value)
    assert str(refusal.value).isprintable()


def test_an_objects_event_is_put_back_as_the_notification_that_it_was() -> None:
    assert attributes_to_put_back(letter(forwarded(OBJECT)), "1") == OBJECT


def test_a_message_of_which_no_log_tells_is_known_by_its_letter_whenever_it_is_put_back() -> None:
    first = attributes_to_put_back(letter(forwarded({})), "")
    assert first == attributes_to_put_back(letter(forwarded({})), "")
    assert first["trainmaster_replayed_id"] == "dead-letter-77"
    assert attributes_to_put_back(letter(forwarded(first)), "999") == first
