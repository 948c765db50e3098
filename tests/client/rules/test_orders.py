"""An order is published once under its own key, and followed to its outcome, on real Pub/Sub and storage servers."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.client.served import PROJECT, Served, served_context
from trainmaster.client.clients import Clients
from trainmaster.client.errors import Refused, TimedOut
from trainmaster.client.rules.orders import REQUESTS_TOPIC, give_order
from trainmaster.local import pubsub
from trainmaster.local.events.clients import clients_of
from trainmaster.orchestrator.core.names import run_id_of_key
from trainmaster.resources import DEPLOY

TOPIC = f"projects/{PROJECT}/topics/{REQUESTS_TOPIC}"
SUBSCRIPTION = f"projects/{PROJECT}/subscriptions/functions"
ORDER = {"fire": {"rule": "nightly"}}


class Functions:
    """Answers each order with the next of `states`, as the functions would, and keeps what it was sent."""

    def __init__(self, served: Served, host: str) -> None:
        self.served, self.host = served, host
        self.orders: list[Any] = []
        self.keys: list[str] = []

    def take(self, *statuses: dict[str, Any]) -> None:
        with clients_of(self.host) as clients:
            pulled = clients.subscriber.pull(subscription=SUBSCRIPTION, max_messages=1, timeout=60)
            (message,) = [each.message for each in pulled.received_messages]
        self.orders.append(json.loads(message.data))
        self.keys.append(message.attributes["idempotency_key"])
        for status in statuses:
            self.served.write(
                "ledger", f"status/keys/{self.keys[-1]}.json", {"schema": "drop_status.v1", **status}
            )


@pytest.fixture
def functions(tmp_path: Path) -> Iterator[Functions]:
    with served_context(tmp_path) as served, pubsub.serve(tmp_path / "pubsub") as host:
        with clients_of(host) as clients:
            clients.publisher.create_topic(name=TOPIC)
            clients.subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
        with Clients(replace(served.clients.context, pubsub_host=host)) as clients:
            yield Functions(replace(served, clients=clients), host)


@contextmanager
def answering(functions: Functions, *statuses: dict[str, Any]) -> Iterator[None]:
    thread = threading.Thread(target=functions.take, args=statuses)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        assert not thread.is_alive()


def test_a_carried_out_order_returns_its_id_and_status(functions: Functions) -> None:
    with answering(functions, {"state": "retrying", "reason": "once more"}, {"state": "succeeded"}):
        order_id, status = give_order(functions.served.clients, ORDER, timeout_s=60)
    assert functions.orders == [ORDER]
    assert order_id == run_id_of_key("message", f"idempotency_key:{functions.keys[0]}")
    assert status["state"] == "succeeded"


def test_two_orders_have_different_keys(functions: Functions) -> None:
    for _ in range(2):
        with answering(functions, {"state": "held", "reason": "not now"}):
            assert give_order(functions.served.clients, ORDER, timeout_s=60)[1]["reason"] == "not now"
    assert len(set(functions.keys)) == 2


@pytest.mark.parametrize("state", ["rejected", "dead_letter"])
def test_a_refused_order_has_every_fault_in_printable_text(functions: Functions, state: str) -> None:
    status = {"state": state, "reason": "two faults", "problems": ["$.fire: one\x1b[2J", "$.fire: two"]}
    with answering(functions, status), pytest.raises(Refused) as refused:
        give_order(functions.served.clients, ORDER, timeout_s=60)
    assert str(refused.value).splitlines() == ["$.fire: one [2J", "$.fire: two"]


def test_an_order_that_is_not_carried_out_in_time_can_be_looked_up(functions: Functions) -> None:
    with pytest.raises(TimedOut) as late:
        give_order(functions.served.clients, ORDER, timeout_s=0)
    functions.take()
    assert "the service has not answered" in str(late.value)
    assert str(late.value).endswith(f"trainmaster status {functions.keys[0]}")


def test_the_topic_is_that_of_the_topology() -> None:
    assert yaml.safe_load((DEPLOY / "topology.yaml").read_text())["topics"]["requests"] == REQUESTS_TOPIC
