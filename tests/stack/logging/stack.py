"""The official clients on one Logging and one Pub/Sub, with the few moves that every test makes."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import logging

from tests.judges.discovery import Side, api
from tests.stack.pubsub.clients import Clients
from tests.stack.pubsub.clients import connected as pubsub_clients

JOB_LOG = "projects/p1/logs/ml.googleapis.com%2F123"
DAY = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
"""Yesterday: older entries than 30 days are not stored."""
RESOURCE = {"type": "ml_job", "labels": {"job_id": "123", "project_id": "p1", "task_name": "service"}}


def service_entry(text: str, **more: object) -> dict[str, object]:
    """A line of the training service's own."""
    return {"logName": JOB_LOG, "resource": RESOURCE, "severity": "INFO", "textPayload": text, **more}


def _faults_of(received: dict[str, Any]) -> list[str]:
    """What the discovery document says against a sink's message."""
    entry = {name: value for name, value in received.items() if name != "attributes"}
    return api("logging.v2").faults("LogEntry", entry, Side.ANSWER)


@dataclass(frozen=True, kw_only=True)
class Stack:
    url: str
    client: logging.Client
    pubsub: Clients

    def topic(self, topic_id: str) -> str:
        """A new topic with a subscription of the same id."""
        topic = f"projects/p1/topics/{topic_id}"
        self.pubsub.publisher.create_topic(name=topic)
        self.pubsub.subscriber.create_subscription(name=self.subscription(topic_id), topic=topic)
        return topic

    @staticmethod
    def subscription(topic_id: str) -> str:
        return f"projects/p1/subscriptions/{topic_id}"

    def sink(self, name: str, topic_id: str, filter_text: str, **more: object) -> dict[str, Any]:
        """A new sink of the project, as the API answers."""
        body = {
            "name": name,
            "destination": f"pubsub.googleapis.com/projects/p1/topics/{topic_id}",
            "filter": filter_text,
        }
        return self.call("POST", "/v2/projects/p1/sinks", {**body, **more})

    def write(self, *entries: dict[str, object], **more: object) -> dict[str, Any]:
        return self.call("POST", "/v2/entries:write", {"entries": list(entries), **more})

    def entries(self, filter_text: str = "", **more: object) -> list[dict[str, Any]]:
        body = {"resourceNames": ["projects/p1"], "filter": filter_text, **more}
        found: list[dict[str, Any]] = self.call("POST", "/v2/entries:list", body).get("entries", [])
        assert not [fault for entry in found for fault in _faults_of(entry)]
        return found

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        answer = requests.request(method, self.url + path, json=body, timeout=60)
        parsed: dict[str, Any] = answer.json()
        return parsed

    def received(self, topic_id: str, count: int) -> list[dict[str, Any]]:
        """This number of entries that a sink has published, acknowledged."""
        found: list[dict[str, Any]] = []
        while len(found) < count and (pulled := self.pubsub.pull(self.subscription(topic_id))):
            self.pubsub.ack(self.subscription(topic_id), *pulled)
            messages = [one.message for one in pulled]
            found += [{**json.loads(one.data), "attributes": dict(one.attributes)} for one in messages]
        return found

    def stats(self, sink: str) -> dict[str, Any]:
        """How a sink is doing."""
        sinks = self.call("GET", "/_stats")["sinks"]
        return next(one for one in sinks if one["name"].endswith(f"/{sink}"))


@contextlib.contextmanager
def connected(url: str, address: str) -> Iterator[Stack]:
    """The clients, pointed at both services the way their users do it."""
    client = logging.Client(
        project="p1",
        credentials=AnonymousCredentials(),
        _use_grpc=False,
        client_options={"api_endpoint": url},
    )
    try:
        with pubsub_clients("ours", address) as pubsub:
            yield Stack(url=url, client=client, pubsub=pubsub)
    finally:
        client._http.close()
