import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage
from google.cloud.storage.notification import BucketNotification

from tests.stack.waiting import wait_until
from trainstack.storage import serve

from .conftest import client_of

TOPIC = "projects/project-1/topics/uploads"


class Sink:
    """Takes messages as Pub/Sub would; refuses them while `down`, and those about the object `refused` forever."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes, Mapping[str, str]]] = []
        self.down = threading.Event()
        self.refused = ""

    def __call__(self, topic: str, messages: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        if self.down.is_set():
            raise ConnectionError("down")
        if self.refused in {attributes["objectId"] for _, attributes in messages}:
            raise exceptions.InvalidArgument("never")
        self.messages += [(topic, data, attributes) for data, attributes in messages]

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(attributes["eventType"], attributes["objectId"]) for _, _, attributes in self.messages]


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def bucket(tmp_path: Path, sink: Sink) -> Iterator[storage.Bucket]:
    with serve(tmp_path, publish=sink) as url, client_of(url) as client:
        yield client.create_bucket("bucket")


def ask_for(bucket: storage.Bucket, **options: object) -> BucketNotification:
    config = bucket.notification(
        topic_name="uploads",
        topic_project="project-1",
        event_types=["OBJECT_FINALIZE"],
        payload_format="JSON_API_V1",
        **options,
    )
    config.create()
    return config


def test_a_configuration_is_created_found_listed_and_deleted(bucket: storage.Bucket) -> None:
    created = ask_for(bucket, blob_name_prefix="configs/", custom_attributes={"k": "v"})
    (listed,) = bucket.list_notifications()
    assert listed.notification_id == created.notification_id
    assert (listed.topic_name, listed.topic_project) == ("uploads", "project-1")
    found = bucket.get_notification(created.notification_id)
    assert (found.event_types, found.blob_name_prefix) == (["OBJECT_FINALIZE"], "configs/")
    assert found.custom_attributes == {"k": "v"}
    found.delete()
    assert list(bucket.list_notifications()) == []
    with pytest.raises(exceptions.NotFound):
        bucket.get_notification(created.notification_id)


def test_an_upload_is_published_with_the_object_and_its_attributes(
    bucket: storage.Bucket, sink: Sink
) -> None:
    config = ask_for(bucket, custom_attributes={"team": "red"})
    blob = bucket.blob("configs/a.yaml")
    blob.metadata = {"k": "v"}
    blob.upload_from_string("x: 1", content_type="application/yaml")
    wait_until(lambda: len(sink.messages) == 1)
    topic, data, attributes = sink.messages[0]
    assert topic == TOPIC
    assert (
        attributes.items()
        >= {
            "notificationConfig": f"projects/_/buckets/bucket/notificationConfigs/{config.notification_id}",
            "eventType": "OBJECT_FINALIZE",
            "payloadFormat": "JSON_API_V1",
            "bucketId": "bucket",
            "objectId": "configs/a.yaml",
            "objectGeneration": str(blob.generation),
            "team": "red",
        }.items()
    )
    assert "overwroteGeneration" not in attributes
    resource = json.loads(data)
    assert resource == bucket.get_blob("configs/a.yaml")._properties
    assert httpx.get(resource["mediaLink"], timeout=60).content == b"x: 1"
    bucket.blob("configs/a.yaml").upload_from_string("x: 2")
    wait_until(lambda: len(sink.messages) == 2)
    assert sink.messages[1][2]["overwroteGeneration"] == str(blob.generation)


def test_a_configuration_for_all_events_gets_changes_replacements_deletions_and_archivings(
    bucket: storage.Bucket, sink: Sink
) -> None:
    bucket.notification(topic_name="uploads", topic_project="project-1", payload_format="NONE").create()
    first, second = bucket.blob("a"), bucket.blob("a")
    first.upload_from_string("x")
    first.metadata = {"k": "v"}
    first.patch()
    second.upload_from_string("y")
    second.delete()
    bucket.versioning_enabled = True
    bucket.patch()
    bucket.blob("b").upload_from_string("x")
    bucket.delete_blob("b")
    wait_until(lambda: len(sink.messages) == 7)
    assert sink.events == [
        ("OBJECT_FINALIZE", "a"), ("OBJECT_METADATA_UPDATE", "a"), ("OBJECT_FINALIZE", "a"), ("OBJECT_DELETE", "a"),
        ("OBJECT_DELETE", "a"), ("OBJECT_FINALIZE", "b"), ("OBJECT_ARCHIVE", "b"),
    ]  # fmt: skip
    assert {data for _, data, _ in sink.messages} == {b""}
    replaced = sink.messages[3][2]
    assert (replaced["objectGeneration"], replaced["overwrittenByGeneration"]) == (
        str(first.generation),
        str(second.generation),
    )


def test_a_configuration_gets_uploads_below_its_prefix_and_no_deletions(
    bucket: storage.Bucket, sink: Sink
) -> None:
    ask_for(bucket, blob_name_prefix="in/")
    for name in ("in/a", "out/a", "in/b"):
        bucket.blob(name).upload_from_string("x")
        bucket.blob(name).delete()
    wait_until(lambda: len(sink.messages) == 2)
    assert sink.events == [("OBJECT_FINALIZE", "in/a"), ("OBJECT_FINALIZE", "in/b")]


def test_a_dropped_file_is_published_when_it_is_closed(
    bucket: storage.Bucket, sink: Sink, tmp_path: Path
) -> None:
    ask_for(bucket)
    folder = tmp_path / "buckets" / "bucket"
    with (folder / "a").open("w") as writer:
        writer.write("x")
        writer.flush()
        (folder / "b" / "c").mkdir(parents=True)
        (folder / "b" / "c" / "d").write_text("y")
        wait_until(lambda: bool(sink.messages))
        assert sink.events == [("OBJECT_FINALIZE", "b/c/d")]
    wait_until(lambda: len(sink.messages) == 2)
    assert sink.events[1:] == [("OBJECT_FINALIZE", "a")]


def test_every_file_of_a_dropped_tree_is_published_once(
    bucket: storage.Bucket, sink: Sink, tmp_path: Path
) -> None:
    ask_for(bucket)
    folder = tmp_path / "buckets" / "bucket"
    wanted = {f"{a}/{b}/{c}" for a in range(5) for b in range(5) for c in range(5)}
    for name in sorted(wanted):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    wait_until(lambda: len(sink.messages) >= len(wanted))
    assert sorted(sink.events) == sorted(("OBJECT_FINALIZE", name) for name in wanted)


def test_nothing_is_lost_while_pubsub_is_down_or_the_emulator_is(tmp_path: Path) -> None:
    down = Sink()
    down.down.set()
    with serve(tmp_path, publish=down) as url, client_of(url) as client:
        bucket = client.create_bucket("bucket")
        ask_for(bucket)
        bucket.blob("a").upload_from_string("x")
    (tmp_path / "buckets" / "bucket" / "b").write_text("y")
    up = Sink()
    with serve(tmp_path, publish=up):
        wait_until(lambda: len(up.messages) == 2)
    assert up.events == [("OBJECT_FINALIZE", "a"), ("OBJECT_FINALIZE", "b")]
    with serve(tmp_path, publish=up) as url, client_of(url) as client:
        client.bucket("bucket").blob("c").upload_from_string("z")
        wait_until(lambda: len(up.messages) == 3)
    assert up.events[2] == ("OBJECT_FINALIZE", "c")


def test_a_message_that_pubsub_never_takes_holds_up_no_other(bucket: storage.Bucket, sink: Sink) -> None:
    ask_for(bucket)
    sink.refused = "bad"
    for name in ("a", "bad", "b"):
        bucket.blob(name).upload_from_string("x")
    wait_until(lambda: [name for _, name in sink.events] == ["a", "b"])


FAULTY: tuple[tuple[dict[str, object], int, str], ...] = (
    ({"topic": "uploads"}, 400, "Invalid topic: 'uploads'"),
    (
        {"event_types": ["OBJECT_RESTORE"]},
        400,
        "event_types: 'OBJECT_RESTORE'; expected one of OBJECT_FINALIZE,",
    ),
    ({"event_types": "OBJECT_DELETE"}, 400, "event_types: 'OBJECT_DELETE'; expected a list"),
    ({"payload_format": "XML"}, 400, "payload_format: 'XML'; expected one of JSON_API_V1, NONE"),
    ({"custom_attributes": {"k": 1}}, 400, "an object of strings"),
)


def test_a_faulty_configuration_is_refused(bucket: storage.Bucket) -> None:
    base = bucket.client._connection.API_BASE_URL
    good = {
        "topic": f"//pubsub.googleapis.com/{TOPIC}",
        "payload_format": "JSON_API_V1",
        "event_types": ["OBJECT_FINALIZE"],
    }
    for change, code, message in FAULTY:
        path = f"{base}/storage/v1/b/bucket/notificationConfigs"
        answer = httpx.post(path, json={**good, **change}, timeout=60)
        assert answer.status_code == code
        assert message in answer.json()["error"]["message"]
