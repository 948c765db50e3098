"""A function that uploads an object, as the event says, through the official client."""

import functions_framework
from cloudevents.http import CloudEvent
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def upload(event: CloudEvent) -> None:
    """One request to the service, without a retry. The object is `name`."""
    client = storage.Client(project="p1", credentials=AnonymousCredentials())
    client.bucket("inbox").blob(event.data["name"]).upload_from_string("x", retry=None)
