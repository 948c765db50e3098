"""An event that keeps failing is given up after its deliveries, kept on the dead-letter topic, and blocks no other event."""

import json

import pytest
from google.cloud import pubsub_v1

from tests.stack.waiting import wait_until
from trainstack.events.clients import PubsubClients
from trainstack.events.cloudevent import CloudEvent
from trainstack.events.eventarc import ensure_subscription, ensure_topic
from trainstack.functions.function import DeadLetter
from trainstack.stack.deliveries import kept_subscription
from trainstack.stack.topology import KeptTopic

from .conftest import PROJECT, REGION, Deliver, Recorder, function

TOPIC = f"projects/{PROJECT}/topics/topic-1"
DEAD = KeptTopic(
    subscription_name=f"projects/{PROJECT}/subscriptions/dead",
    topic_name=f"projects/{PROJECT}/topics/dead",
    retention_h=168,
    ack_deadline_s=600,
)
ATTEMPTS = 5
POISON = b"poison"


DEAD_LETTER = DeadLetter(topic="dead", max_attempts=ATTEMPTS)


def keep_dead_letters(clients: PubsubClients) -> None:
    ensure_topic(clients.publisher, DEAD.topic_name)
    ensure_subscription(clients.subscriber, kept_subscription(DEAD))


def dead_letters(clients: PubsubClients) -> list[pubsub_v1.types.PubsubMessage]:
    pulled = clients.subscriber.pull(subscription=DEAD.subscription_name, max_messages=99, timeout=60)
    return [received.message for received in pulled.received_messages]


@pytest.mark.slow
def test_a_poison_event_is_given_up_and_the_burst_behind_it_is_not_kept_waiting(
    clients: PubsubClients, deliver: Deliver, recorder: Recorder
) -> None:
    keep_dead_letters(clients)

    def answer(event: CloudEvent) -> int:
        return 500 if "kind" in json.loads(event.body)["message"].get("attributes", {}) else 200

    recorder.answer = answer
    with deliver(function(concurrency=1, dead_letter=DEAD_LETTER), recorder):
        clients.publisher.publish(TOPIC, POISON, kind="poison").result(timeout=60)
        recorder.wait_for(1)
        burst = [clients.publisher.publish(TOPIC, b"%d" % number) for number in range(100)]
        wanted = {future.result(timeout=60) for future in burst}
        wait_until(
            lambda: wanted <= {event.headers["ce-id"] for event in recorder.events}, "the burst is through"
        )
        (letter,) = dead_letters(clients)
    poisoned = [event for event in recorder.events if event.headers["ce-id"] not in wanted]
    assert letter.data == POISON
    assert letter.attributes["kind"] == "poison"
    assert letter.attributes["CloudPubSubDeadLetterSourceSubscription"] == f"eventarc-{REGION}-f1-sub"
    assert [json.loads(event.body)["deliveryAttempt"] for event in poisoned] == [1, 2, 3, 4, 5]
    assert len(recorder.events) == len(wanted) + ATTEMPTS
