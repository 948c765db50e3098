"""Notices over Pub/Sub, through google-cloud-pubsub. PUBSUB_EMULATOR_HOST is the client's own variable."""

from functools import cached_property
from typing import TYPE_CHECKING

from trainmaster.orchestrator.adapters.refusals import failures_of
from trainmaster.orchestrator.core.documents.codec import json_line
from trainmaster.orchestrator.core.notices.notice import Notice, cloud_event
from trainmaster.partial_import import IMPORTING

if TYPE_CHECKING:
    from google.cloud.pubsub_v1 import PublisherClient

SERVICE = "Pub/Sub"
TIMEOUT_S = 20.0
FILTERED = ("run_id", "state", "team", "model_name", "rule_id")
"""Fields of a notice that its message repeats as attributes, so that subscriptions can filter by them."""


class PubsubNotices:
    """One topic for every notice, each a CloudEvent in structured JSON form.

    Source: https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/google-cloud-pubsub-protocol-binding.md
    """

    def __init__(self, *, project: str, topic: str, source: str) -> None:
        self._topic_name = f"projects/{project}/topics/{topic}"
        self._source = source

    @cached_property
    def _client(self) -> "PublisherClient":
        # Imported late: most events end no run, and this client takes the longest to load.
        with IMPORTING:
            from google.cloud.pubsub_v1 import PublisherClient

        return PublisherClient()

    def publish(self, notice: Notice) -> None:
        """Publish the notice, and wait for the service's response.

        Raises:
            ServiceFailed: there was no response, or an error.
        """
        content = json_line(cloud_event(notice, self._source)).encode()
        with failures_of(SERVICE, f"publish to {self._topic_name}"):
            self._client.publish(self._topic_name, content, **_attributes(notice)).result(timeout=TIMEOUT_S)


def _attributes(notice: Notice) -> dict[str, str]:
    repeated = {name: str(notice.data[name]) for name in FILTERED if name in notice.data}
    return {"content-type": "application/cloudevents+json; charset=utf-8", "type": notice.type, **repeated}
