"""A user's own code: it checks the files of readings that arrive in a bucket, and announces those that can be used."""

import csv
import io

from google.cloud import pubsub_v1, storage


def check_readings(bucket: str, name: str) -> int:
    """The number of readings in a CSV object, which gets it as metadata.

    Raises:
        ValueError: a line is no reading.
    """
    blob = storage.Client().bucket(bucket).get_blob(name)
    lines = list(csv.reader(io.StringIO(blob.download_as_text())))
    for number, line in enumerate(lines, start=1):
        if len(line) != 3:
            raise ValueError(f"line {number} has {len(line)} values, expected x, y and label")
    blob.metadata = {"readings": str(len(lines))}
    blob.patch()
    return len(lines)


def announce(topic: str, bucket: str, name: str) -> str:
    """Check the object, and publish its URI. Returns the message's id."""
    count = check_readings(bucket, name)
    publisher = pubsub_v1.PublisherClient()
    return publisher.publish(topic, f"gs://{bucket}/{name}".encode(), readings=str(count)).result(timeout=30)
