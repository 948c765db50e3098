from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from google.cloud import pubsub_v1, storage

from trainmaster.local.pubsub import serve as serve_pubsub
from trainmaster.local.storage import serve
from trainmaster.local.storage.pubsub import Publisher

Connect = Callable[[str], AbstractContextManager[storage.Client]]


@pytest.fixture
def pubsub_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serve_pubsub(tmp_path / "pubsub") as host:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", host)
        yield host


def test_an_upload_reaches_a_subscriber_through_the_official_clients(
    tmp_path: Path, pubsub_host: str, connect: Connect
) -> None:
    topic, subscription = "projects/project-1/topics/uploads", "projects/project-1/subscriptions/uploads"
    with (
        closing(Publisher(pubsub_host)) as publisher,
        serve(tmp_path / "storage", publish=publisher) as url,
        connect(url) as client,
        pubsub_v1.SubscriberClient() as subscriber,
    ):
        admin = pubsub_v1.PublisherClient()
        admin.create_topic(name=topic)
        subscriber.create_subscription(name=subscription, topic=topic)
        bucket = client.create_bucket("bucket")
        bucket.notification(
            topic_name="uploads", topic_project="project-1", payload_format="JSON_API_V1"
        ).create()
        bucket.blob("a/b.yaml").upload_from_string("x")
        pulled = subscriber.pull(subscription=subscription, max_messages=10, timeout=60)
        admin.transport.close()
    (received,) = pulled.received_messages
    assert received.message.attributes["objectId"] == "a/b.yaml"
    assert b'"name": "a/b.yaml"' in received.message.data
