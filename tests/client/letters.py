"""Dead letters as Pub/Sub makes them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from trainmaster.client.dead_letters.letter import Letter

PROJECT = "p1"
SOURCE = "eventarc-us-central1-on-request-published-sub"
PUBLISHED = datetime(2026, 3, 1, 11, 0, 0, 123456, tzinfo=UTC)
OBJECT = {
    "eventType": "OBJECT_FINALIZE",
    "bucketId": "inbox",
    "objectId": "rules/a\x1b[31m b.yaml",
    "objectGeneration": "17",
    "eventTime": "2026-03-01T11:00:00Z",
}


def forwarded(attributes: Mapping[str, str], published: datetime = PUBLISHED) -> dict[str, str]:
    """The attributes of a message that Pub/Sub gave up."""
    return {
        **attributes,
        "CloudPubSubDeadLetterSourceDeliveryCount": "50",
        "CloudPubSubDeadLetterSourceSubscription": SOURCE,
        "CloudPubSubDeadLetterSourceSubscriptionProject": PROJECT,
        "CloudPubSubDeadLetterSourceTopicPublishTime": published.isoformat(),
    }


def letter(attributes: Mapping[str, str], data: bytes = b"x") -> Letter:
    return Letter(
        project=PROJECT,
        id="77",
        ack_id="a",
        data=data,
        attributes=attributes,
        ordering_key="",
        given_up_at=datetime.now(UTC),
    )
