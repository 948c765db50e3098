"""Functions that answer orders as a test says, behind a real Pub/Sub and a real storage server."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.client.served import PROJECT, Served, served_context
from trainmaster.client.clients import Clients
from trainmaster.client.wait import poll
from trainmaster.orchestrator.core.names import run_id_of_key
from trainmaster.orchestrator.core.runs.sender import ACCOUNT_KEY
from trainstack import pubsub
from trainstack.events.clients import clients_of

TOPIC = f"projects/{PROJECT}/topics/trainmaster-requests"
SUBSCRIPTION = f"projects/{PROJECT}/subscriptions/functions"


class Functions:
    """Answers each order with the next of `states`, as the functions would, and keeps what it was sent."""

    def __init__(self, served: Served, host: str) -> None:
        self.served, self.host = served, host
        self.orders: list[Any] = []
        self.keys: list[str] = []
        self.senders: list[str] = []

    def take(self, *statuses: dict[str, Any], before: Callable[[str], None] | None = None) -> None:
        """Carry out one order. `before` is called with the order's id before its status is written."""
        with clients_of(self.host) as clients:
            pulled = clients.subscriber.pull(subscription=SUBSCRIPTION, max_messages=1, timeout=60)
            (message,) = [each.message for each in pulled.received_messages]
        self.orders.append(json.loads(message.data))
        self.senders.append(message.attributes.get(ACCOUNT_KEY, ""))
        self.keys.append(message.attributes["idempotency_key"])
        if before is not None:
            before(run_id_of_key("message", f"idempotency_key:{self.keys[-1]}"))
        for status in statuses:
            self.served.write(
                "ledger", f"status/keys/{self.keys[-1]}.json", {"schema": "drop_status.v1", **status}
            )


@contextmanager
def served_functions(folder: Path) -> Iterator[Functions]:
    """A context with storage and Pub/Sub."""
    with served_context(folder, publishes=True) as served, pubsub.serve(folder / "pubsub") as host:
        with clients_of(host) as clients:
            clients.publisher.create_topic(name=TOPIC)
            clients.subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
        with Clients(replace(served.clients.context, pubsub_host=host)) as clients:
            yield Functions(replace(served, clients=clients), host)


@contextmanager
def answering(
    functions: Functions, *statuses: dict[str, Any], before: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Answer one order that is given within the block."""
    thread = threading.Thread(target=functions.take, args=statuses, kwargs={"before": before})
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def answering_rule(served: Served, name: str, status: dict[str, Any]) -> Iterator[None]:
    """Give the rule's file in the inbox this status, once it is changed within the block."""
    bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
    before = int(bucket.get_blob(name).generation)

    def answer() -> None:
        generation = poll(
            served.clients.context, lambda: int(bucket.get_blob(name).generation), before.__ne__, timeout_s=60
        )
        served.write(
            "ledger", f"status/{name}.json", {**status, "dropped_name": name, "generation": generation}
        )

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    thread.join(60)
