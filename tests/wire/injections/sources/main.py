"""A function that uploads an object, or publishes a message, as the event says, through the official clients."""

import functions_framework
from cloudevents.http import CloudEvent
from google.auth.credentials import AnonymousCredentials
from google.cloud import pubsub_v1, storage


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def upload(event: CloudEvent) -> None:
    """One request to the service, without a retry. The object is `name`; with a `topic`, that is the message."""
    if topic := event.data.get("topic"):
        pubsub_v1.PublisherClient().publish(topic, event.data["name"].encode(), retry=None).result(timeout=60)
        return
    client = storage.Client(project="p1", credentials=AnonymousCredentials())
    client.bucket("inbox").blob(event.data["name"]).upload_from_string("x", retry=None)
