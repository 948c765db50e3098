"""Notices arrive as CloudEvents over Pub/Sub, through the official client."""

import json
from datetime import UTC, datetime

import pytest
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from trainmaster.orchestrator.adapters.pubsub import PubsubNotices
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.notices.notice import Notice

NOTICE = Notice(
    id="run-1/succeeded",
    type="trainmaster.run.succeeded.v1",
    subject="run-1",
    time=datetime(2026, 3, 1, tzinfo=UTC),
    data={"run_id": "run-1", "state": "succeeded", "team": "vision"},
)


@pytest.fixture
def notices(pubsub_host: str, monkeypatch: pytest.MonkeyPatch) -> PubsubNotices:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_host)
    return PubsubNotices(project="my-project", topic="notices", source="//trainmaster/here")


def test_a_notice_arrives_as_a_cloud_event_with_its_stable_id(notices: PubsubNotices) -> None:
    topic, subscription = "projects/my-project/topics/notices", "projects/my-project/subscriptions/all"
    with PublisherClient() as admin, SubscriberClient() as subscriber:
        admin.create_topic(name=topic)
        subscriber.create_subscription(name=subscription, topic=topic)
        notices.publish(NOTICE)
        (received,) = subscriber.pull(
            subscription=subscription, max_messages=10, timeout=60
        ).received_messages
        subscriber.acknowledge(subscription=subscription, ack_ids=[received.ack_id])
    notices._client.stop()
    event = json.loads(received.message.data)
    assert event == {
        "specversion": "1.0",
        "id": "run-1/succeeded",
        "source": "//trainmaster/here",
        "type": "trainmaster.run.succeeded.v1",
        "subject": "run-1",
        "time": "2026-03-01T00:00:00.000000Z",
        "datacontenttype": "application/json",
        "data": {"run_id": "run-1", "state": "succeeded", "team": "vision"},
    }
    attributes = dict(received.message.attributes)
    assert attributes.pop("content-type").startswith("application/cloudevents+json")
    assert attributes == {
        "type": "trainmaster.run.succeeded.v1",
        "run_id": "run-1",
        "state": "succeeded",
        "team": "vision",
    }


def test_an_unknown_topic_is_a_service_failure(pubsub_host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_host)
    notices = PubsubNotices(project="my-project", topic="never-made", source="//trainmaster/here")
    with pytest.raises(ServiceFailed) as failure:
        notices.publish(NOTICE)
    assert failure.value.retryable
    notices._client.stop()
