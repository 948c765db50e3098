"""The subscription that keeps the dead letters, and the topics that they came from."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from google.api_core.exceptions import DeadlineExceeded

from trainmaster.client.clients import Clients
from trainmaster.client.dead_letters.letter import Letter

if TYPE_CHECKING:
    from google.pubsub_v1.types import ReceivedMessage

QUIET_S, LOCAL_QUIET_S = (4.0,), (0.7, 4.0)
"""The time-outs of pulls, each tried after no answer came within the one before it.

No letters are left when a pull returns nothing, or the last one has no answer. The cloud holds a pull open without an
answer; the local stack answers half a second before the time-out, unless the machine is busy.
"""
AT_MOST = 1000
_PER_PULL = 100
_CALL_S = 30.0
_DELETED_TOPIC = "_deleted-topic_"


class SourceGoneError(Exception):
    """The source subscription of a letter has lost its topic, or does not dead-letter to this topic."""


class Mailbox:
    """The letters of one subscription. Every call raises `google.api_core`'s errors unchanged."""

    def __init__(self, clients: Clients, subscription_id: str) -> None:
        self._subscriber, self._publisher = clients.pubsub
        self._project = clients.context.project
        self._quiet_s = LOCAL_QUIET_S if clients.context.pubsub_host else QUIET_S
        self._subscription_name = f"projects/{self._project}/subscriptions/{subscription_id}"
        self._topic_of = cache(self._topic_name)
        self._dead_letter_topic = cache(self._own_topic)
        self._held: dict[str, str] = {}

    @contextmanager
    def letters(self) -> Iterator[list[Letter]]:
        """Every letter that no other client holds, each once, the oldest first; at most AT_MOST.

        When the block ends, the letters that were not taken off are available to the next reader at once.
        """
        # Connect first: a pull that times out while connecting may hide letters without returning them.
        self._dead_letter_topic()
        letters: dict[str, Letter] = {}
        try:
            while len(letters) < AT_MOST and (pulled := self._pull()):
                for letter in map(self._letter, pulled):
                    letters[letter.id] = letter
                    self._held[letter.id] = letter.ack_id
            yield sorted(letters.values(), key=lambda letter: (letter.given_up_at, letter.id))
        finally:
            self._release()

    def put_back(self, letter: Letter, attributes: dict[str, str]) -> str:
        """Publish the letter to the topic that it came from, and return the new message's id.

        Raises:
            NoSourceError: the letter does not name its source.
            SourceGoneError: the source subscription has lost its topic, or dead-letters elsewhere or nowhere.
        """
        from google.pubsub_v1.types import PubsubMessage

        message = PubsubMessage(data=letter.data, attributes=attributes, ordering_key=letter.ordering_key)
        topic_name = self._topic_of(letter.subscription_name)
        answer = self._publisher.publish(topic=topic_name, messages=[message], timeout=_CALL_S)
        return str(answer.message_ids[0])

    def take_off(self, letter: Letter) -> None:
        """Remove the letter for good."""
        self._subscriber.acknowledge(
            subscription=self._subscription_name, ack_ids=[letter.ack_id], timeout=_CALL_S
        )
        del self._held[letter.id]

    def _pull(self) -> "Sequence[ReceivedMessage]":
        for timeout_s in self._quiet_s:
            try:
                answer = self._subscriber.pull(
                    subscription=self._subscription_name,
                    max_messages=_PER_PULL,
                    timeout=timeout_s,
                    retry=None,
                )
            except DeadlineExceeded:
                continue
            return list(answer.received_messages)
        return []

    def _release(self) -> None:
        ack_ids = list(self._held.values())
        self._held.clear()
        for first in range(0, len(ack_ids), _PER_PULL):
            self._subscriber.modify_ack_deadline(
                subscription=self._subscription_name,
                ack_ids=ack_ids[first : first + _PER_PULL],
                ack_deadline_seconds=0,
                timeout=_CALL_S,
            )

    def _own_topic(self) -> str:
        found = self._subscriber.get_subscription(subscription=self._subscription_name, timeout=_CALL_S)
        return str(found.topic)

    def _topic_name(self, subscription_name: str) -> str:
        found = self._subscriber.get_subscription(subscription=subscription_name, timeout=_CALL_S)
        if found.topic == _DELETED_TOPIC:
            raise SourceGoneError(f"{subscription_name} no longer has a topic: the topic was deleted")
        here = self._dead_letter_topic()
        # Only a subscription that dead-letters to this topic can be the source of a letter. Without this check, a
        # publisher of dead letters could choose where they are published with the replayer's permissions.
        if (given_up_to := found.dead_letter_policy.dead_letter_topic) != here:
            raise SourceGoneError(
                f"{subscription_name} sends its dead letters to {given_up_to or 'no topic'}, not to {here}: "
                "set its dead-letter topic again if this letter is its own"
            )
        return str(found.topic)

    def _letter(self, received: "ReceivedMessage") -> Letter:
        message = received.message
        return Letter(
            project=self._project,
            id=message.message_id,
            ack_id=received.ack_id,
            data=message.data,
            attributes=dict(message.attributes),
            ordering_key=message.ordering_key,
            given_up_at=message.publish_time,
        )
