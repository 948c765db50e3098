"""Events reach a function through Pub/Sub as Eventarc brings them: acknowledged, repeated, limited, never lost."""

import json
import threading
from pathlib import Path

import pytest
from google.cloud import storage

from trainstack.events.backoff import Backoff
from trainstack.events.clients import PubsubClients
from trainstack.events.cloudevent import CloudEvent
from trainstack.events.eventarc import (
    ensure_notification,
    ensure_subscription,
    ensure_topic,
    subscription_of,
    transport_of,
)
from trainstack.functions.function import BucketTrigger, DeadLetter
from trainstack.publisher import Publisher
from trainstack.storage import serve as serve_storage

from .conftest import PROJECT, REGION, Deliver, Recorder, function

TOPIC = f"projects/{PROJECT}/topics/topic-1"


def publish(clients: PubsubClients, count: int = 1) -> None:
    ensure_topic(clients.publisher, TOPIC)
    for future in [clients.publisher.publish(TOPIC, b"%d" % number) for number in range(count)]:
        future.result(timeout=60)


def message_of(event: CloudEvent) -> dict[str, str]:
    message: dict[str, str] = json.loads(event.body)["message"]
    return message


def test_a_published_message_arrives_with_the_names_of_its_topic_and_subscription(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    with deliver(function(), recorder):
        future = clients.publisher.publish(TOPIC, b"hello", kind="test")
        message_id = future.result(timeout=60)
        (event,) = recorder.wait_for(1)
    assert event.headers["ce-id"] == message_id
    assert event.headers["ce-source"] == f"//pubsub.googleapis.com/{TOPIC}"
    body = json.loads(event.body)
    assert body["subscription"] == f"projects/{PROJECT}/subscriptions/eventarc-{REGION}-f1-sub"
    assert body["message"]["attributes"] == {"kind": "test"}


def test_an_event_answered_with_an_error_comes_again_until_it_is_acknowledged(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    answers = iter([500, 302, 429, 204])
    recorder.answer = lambda _event: next(answers)
    with deliver(function(), recorder):
        publish(clients)
        events = recorder.wait_for(4)
    assert len({event.headers["ce-id"] for event in events}) == 1
    assert next(answers, "used up") == "used up"


def test_without_retry_an_event_comes_once_even_after_an_error(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    recorder.answer = lambda _event: 500
    with deliver(function(retry=False, concurrency=1), recorder):
        publish(clients, count=5)
        events = recorder.wait_for(5)
    assert sorted(message_of(event)["data"] for event in events) == sorted(
        message_of(event)["data"] for event in recorder.events
    )


def test_no_more_events_are_out_than_the_function_handles_at_once(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    full = threading.Barrier(3)

    def answer(_event: CloudEvent) -> int:
        full.wait(20)  # passes in threes: three must be out, or nothing ever moves
        return 200

    recorder.answer = answer
    with deliver(function(concurrency=3), recorder):
        publish(clients, count=9)
        recorder.wait_for(9)
    assert recorder.most_at_once == 3


def test_an_event_without_an_answer_when_the_delivery_stops_comes_again(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    released = threading.Event()

    def answer(_event: CloudEvent) -> int:
        released.wait(20)
        return 502  # what the deliverer sees when the function is stopped under it

    recorder.answer = answer
    with deliver(function(), recorder):
        publish(clients)
        recorder.wait_for(1)
        released.set()
    recorder.answer = lambda _event: 200
    with deliver(function(), recorder):
        first, second = recorder.wait_for(2)
    assert first.headers["ce-id"] == second.headers["ce-id"]


def test_an_upload_arrives_as_a_finalized_object(
    clients: PubsubClients,
    deliver: Deliver,
    recorder: Recorder,
    host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uploads = function(BucketTrigger(bucket="inbox"))
    transport = transport_of(uploads, project=PROJECT, region=REGION)
    publisher = Publisher(host)
    with serve_storage(tmp_path / "storage", publish=publisher) as url, deliver(uploads, recorder):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        client = storage.Client(project=PROJECT)
        bucket = client.create_bucket("inbox")
        for _ in range(2):  # a second start finds the notification and adds none
            ensure_notification(url, "inbox", transport.topic_name)
        blob = bucket.blob("requests/a b.yaml")
        blob.upload_from_string("model: m")
        (event,) = recorder.wait_for(1)
        client.close()
    publisher.close()
    assert len(recorder.events) == 1
    resource = json.loads(event.body)
    assert (resource["kind"], resource["name"]) == ("storage#object", "requests/a b.yaml")
    assert resource["generation"] == str(blob.generation)
    assert event.headers["ce-subject"] == "objects/requests/a%20b.yaml"


def test_a_message_other_than_a_notification_is_dropped_and_delays_no_other(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    uploads = function(BucketTrigger(bucket="inbox"), concurrency=1)
    transport = transport_of(uploads, project=PROJECT, region=REGION)
    with deliver(uploads, recorder):
        clients.publisher.publish(transport.topic_name, b"junk").result(timeout=60)
        clients.publisher.publish(
            transport.topic_name,
            b"{}",
            eventType="OBJECT_FINALIZE",
            bucketId="inbox",
            objectId="o",
            eventTime="2026-01-01T00:00:00Z",
        ).result(timeout=60)
        (event,) = recorder.wait_for(1)
    assert event.headers["ce-subject"] == "objects/o"


def test_a_later_start_gives_the_subscription_its_new_policies_and_keeps_its_backlog(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    with deliver(function(), recorder):
        pass
    publish(clients)
    changed = function(dead_letter=DeadLetter(topic="dead", max_attempts=5))
    transport = transport_of(changed, project=PROJECT, region=REGION)
    ensure_subscription(clients.subscriber, subscription_of(changed, transport, Backoff(min_s=2, max_s=5)))
    found = clients.subscriber.get_subscription(subscription=transport.subscription_name)
    assert (found.retry_policy.minimum_backoff.seconds, found.retry_policy.maximum_backoff.seconds) == (2, 5)
    policy = found.dead_letter_policy
    assert (policy.dead_letter_topic, policy.max_delivery_attempts) == (f"projects/{PROJECT}/topics/dead", 5)
    with deliver(function(), recorder):
        recorder.wait_for(1)
