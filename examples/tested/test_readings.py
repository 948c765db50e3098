"""Tests of the code above on a local stack, with Google's own clients: docs/how-to/test-your-own-code.md."""

from pathlib import Path

import pytest
from google.api_core.exceptions import ServiceUnavailable
from google.cloud import pubsub_v1, storage
from readings import announce, check_readings

READINGS = "0.1,0.9,above\n0.7,0.2,below\n0.3,0.8,above\n"
REQUEST = Path(__file__).with_name("request.yaml")


@pytest.fixture
def bucket(stack):
    bucket = stack.bucket()
    bucket.blob("readings/monday.csv").upload_from_string(READINGS)
    return bucket.name


def test_the_object_gets_the_number_of_its_readings(bucket):
    assert check_readings(bucket, "readings/monday.csv") == 3
    blob = storage.Client().bucket(bucket).get_blob("readings/monday.csv")
    assert blob.metadata == {"readings": "3"}


def test_a_line_without_a_label_is_refused(stack):
    bucket = stack.bucket()
    bucket.blob("tuesday.csv").upload_from_string("0.1,0.9\n")
    with pytest.raises(ValueError, match="line 1 has 2 values"):
        check_readings(bucket.name, "tuesday.csv")


def test_subscribers_get_the_uri(stack, bucket):
    topic = stack.topic()
    subscription = stack.subscription(topic)
    announce(topic, bucket, "readings/monday.csv")
    with pubsub_v1.SubscriberClient() as subscriber:
        (received,) = subscriber.pull(subscription=subscription, max_messages=1, timeout=30).received_messages
    assert received.message.data.decode() == f"gs://{bucket}/readings/monday.csv"
    assert received.message.attributes["readings"] == "3"


def test_a_storage_that_fails_is_reported(stack, bucket):
    stack.inject("storage.objects.get", "error_before", code=503, match=f"{bucket}/*")
    client = storage.Client()
    with pytest.raises(ServiceUnavailable):
        client.bucket(bucket).get_blob("readings/monday.csv", retry=None)


def test_the_most_frequent_label_is_the_model(stack, bucket):
    run_id = stack.submit(REQUEST, "--set", f'args=["--data=gs://{bucket}/readings"]')
    run = stack.wait_for_run(run_id)
    assert run["state"] == "succeeded"
    assert run["model"]["metrics"]["accuracy"] == pytest.approx(2 / 3)
