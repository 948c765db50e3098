from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

from google.cloud import storage

from tests.stack.pubsub.clients import connected
from trainstack.publisher import Publisher
from trainstack.pubsub import serve as serve_pubsub
from trainstack.storage import serve

Connect = Callable[[str], AbstractContextManager[storage.Client]]


def test_an_upload_reaches_a_subscriber_through_the_official_clients(
    tmp_path: Path, connect: Connect
) -> None:
    with (
        serve_pubsub(tmp_path / "pubsub") as host,
        connected("ours", host) as clients,
        closing(Publisher(host)) as publisher,
        serve(tmp_path / "storage", publish=publisher) as url,
        connect(url) as client,
    ):
        topic = clients.topic()
        subscription = clients.subscription(topic)
        bucket = client.create_bucket("bucket")
        bucket.notification(
            topic_name=topic.rpartition("/")[2],
            topic_project="p1",
            payload_format="JSON_API_V1",
            event_types=["OBJECT_FINALIZE"],
        ).create()
        bucket.blob("a/b.yaml").upload_from_string("x")
        (received,) = clients.pull(subscription)
    assert received.message.attributes["objectId"] == "a/b.yaml"
    assert b'"name": "a/b.yaml"' in received.message.data
