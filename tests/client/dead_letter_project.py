"""A project with dead letters, on real Pub/Sub and logging servers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import DeadlineExceeded
from google.cloud.logging import Resource

from tests.client.letters import PROJECT, SOURCE
from tests.ready_stack import announce
from trainmaster.client.clients import log_reader
from trainstack import logging, pubsub
from trainstack.events.clients import PubsubClients, clients_of

DEAD = "trainmaster-dead-letters"
DEAD_TOPIC = f"projects/{PROJECT}/topics/{DEAD}"
OTHERS = "somebody-elses-orders"


@dataclass(frozen=True, kw_only=True)
class DeadLetterProject:
    """A project with a dead-letter topic and one topic that events came from."""

    clients: PubsubClients
    logs: Any  # the library's classes carry no types
    env_file: Path

    def read_logs_at(self, url: str) -> None:
        text = self.env_file.read_text()
        self.env_file.write_text(f"{text}export LOGGING_EMULATOR_HOST={url}\n")

    def bury(self, data: bytes, attributes: Mapping[str, str]) -> str:
        return str(self.clients.publisher.publish(DEAD_TOPIC, data, **attributes).result(timeout=60))

    def failed(self, key: str, message: str, event_id: str = "1", severity: str = "WARNING") -> None:
        fields = {"error": "DocumentDamaged", "event_id": event_id, "event_key": key, "message": message}
        resource = Resource(type="cloud_run_revision", labels={})
        # Named here, or the client asks the network for Google's metadata server.
        log = self.logs.logger("run.googleapis.com%2Fstdout", resource=resource)
        log.log_struct(fields, severity=severity)

    def put_back(self, subscription: str = SOURCE) -> list[Any]:
        """Pull and acknowledge the messages on the source's topic."""
        name = f"projects/{PROJECT}/subscriptions/{subscription}"
        try:
            answer = self.clients.subscriber.pull(subscription=name, max_messages=99, timeout=0.7)
        except DeadlineExceeded:  # the machine is busy
            answer = self.clients.subscriber.pull(subscription=name, max_messages=99, timeout=30)
        pulled = answer.received_messages
        if pulled:
            self.clients.subscriber.acknowledge(subscription=name, ack_ids=[each.ack_id for each in pulled])
        return [each.message for each in pulled]


def use_stack(monkeypatch: pytest.MonkeyPatch, state: Path, **addresses: str) -> None:
    """Make the commands of this test work in a stack with these addresses."""
    roles = ("INBOX", "LEDGER", "MODELS", "CHAMPIONS", "DATA")
    variables = {
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        "TRAINMASTER_REGION": "us-central1",
        "TRAINMASTER_DEPLOYMENTS": "bare",
        **{f"TRAINMASTER_{role}_BUCKET": role.lower() for role in roles},
        **addresses,
    }
    state.mkdir()
    announce(state, variables)
    monkeypatch.setenv("TRAINMASTER_CONTEXT", f"local:{state}")


@contextmanager
def dead_letter_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadLetterProject]:
    """The project, in which the commands of this test work."""
    with (
        pubsub.serve(folder / "pubsub") as host,
        logging.serve(folder / "logging", host) as url,
        clients_of(host) as clients,
    ):
        gives_up = {"dead_letter_policy": {"dead_letter_topic": DEAD_TOPIC, "max_delivery_attempts": 50}}
        for topic, subscription, policy in (
            (DEAD, DEAD, {}),
            ("requests", SOURCE, gives_up),
            ("orders", OTHERS, {}),
        ):
            topic_name = f"projects/{PROJECT}/topics/{topic}"
            clients.publisher.create_topic(name=topic_name)
            name = f"projects/{PROJECT}/subscriptions/{subscription}"
            clients.subscriber.create_subscription(request={"name": name, "topic": topic_name, **policy})
        use_stack(monkeypatch, folder / "state", PUBSUB_EMULATOR_HOST=host, LOGGING_EMULATOR_HOST=url)
        logs = log_reader(project=PROJECT, logging_host=url)
        yield DeadLetterProject(clients=clients, logs=logs, env_file=folder / "state" / "stack.env")
        logs.close()
