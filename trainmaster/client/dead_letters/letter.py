"""One dead letter: the event it was, and the message that puts it back. Pure.

Pub/Sub forwards a message that kept failing as a new one, its bytes and attributes the same, with four attributes
more: https://cloud.google.com/pubsub/docs/handling-failures#how_dead_letter_topics_work
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.documents.faults import shown
from trainmaster.orchestrator.core.events.envelope import (
    REPLAYED_ID,
    REPLAYED_PUBLISH_TIME,
    first_published,
    message_key,
    object_key,
)

_FORWARDED = "CloudPubSubDeadLetter"
_RESERVED = "goog"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCKS_APART = timedelta(minutes=5)
"""How much earlier than an event what is told of it may seem to be: the clocks of services differ."""

# https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names
_SUBSCRIPTION_ID = re.compile(r"[A-Za-z][A-Za-z0-9._~+%-]{2,254}")
_COUNT = re.compile(r"[0-9]{1,9}")


class NoSourceError(Exception):
    """The message does not say where it failed, or names a place that is not to be believed."""


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A message on the dead-letter topic. `id` is its id there; `ack_id` holds it for this process.

    Its bytes and attributes are whatever anybody published there: they are read so that no letter can keep the
    others from being read. `project` is that of the subscription that the letter was pulled from.
    """

    project: str
    id: str
    ack_id: str
    data: bytes
    attributes: Mapping[str, str]
    ordering_key: str
    given_up_at: datetime

    @property
    def subscription_name(self) -> str:
        """The full name of the subscription that is said to have given the event up, one of this project.

        Raises:
            NoSourceError: the message names none, one that cannot be, or one of another project. Whoever may
                publish a dead letter would else choose where the replayer's rights publish it.
        """
        project = self.attributes.get(f"{_FORWARDED}SourceSubscriptionProject", "")
        name = self.attributes.get(f"{_FORWARDED}SourceSubscription", "").rpartition("/")[2]
        if not (project and name):
            raise NoSourceError(
                f"message {self.id} does not name the subscription that dead-lettered it, so it was published here directly; "
                "look at it with gcloud pubsub subscriptions pull"
            )
        if project != self.project:
            raise NoSourceError(
                f"message {self.id} names a subscription of the project {shown(project)}, and only what those of "
                f"{shown(self.project)} gave up is put back; a project is named by its id, not its number"
            )
        if not _SUBSCRIPTION_ID.fullmatch(name):
            raise NoSourceError(
                f"message {self.id} names the subscription {shown(name)}, which cannot be one; "
                "it was published here directly"
            )
        return f"projects/{project}/subscriptions/{name}"

    @property
    def deliveries(self) -> str:
        """How often the event was tried, about, and `?` where no number says; Pub/Sub counts by best effort."""
        found = self.attributes.get(f"{_FORWARDED}SourceDeliveryCount", "")
        return found if _COUNT.fullmatch(found) else "?"

    @property
    def published_at(self) -> datetime:
        """When the event was published first, also if it was put back before; else when it was given up."""
        own = time_or(self.attributes.get(f"{_FORWARDED}SourceTopicPublishTime"), self.given_up_at)
        return first_published(time_or(self.attributes.get(REPLAYED_PUBLISH_TIME), own), own)

    @property
    def failed_since(self) -> datetime:
        """No failure of the event is earlier, whatever time the letter claims."""
        return min(max(self.published_at, _EPOCH), self.given_up_at) - CLOCKS_APART

    @property
    def object(self) -> tuple[str, str, str] | None:
        """Bucket, name and generation for a bucket's event, None for a message."""
        bucket, name, generation = (
            self.attributes.get(key, "") for key in ("bucketId", "objectId", "objectGeneration")
        )
        is_object = "eventType" in self.attributes and bucket and name and generation
        return (bucket, name, generation) if is_object else None

    @property
    def own_attributes(self) -> dict[str, str]:
        """The attributes that the event had when it was published."""
        return {
            name: value
            for name, value in self.attributes.items()
            # The service adds names that begin with "goog" itself, and takes none.
            if not name.startswith((_FORWARDED, _RESERVED))
            and name not in (REPLAYED_ID, REPLAYED_PUBLISH_TIME)
        }


def event_key(letter: Letter) -> str:
    """The key under which a function told why the event failed."""
    if letter.object is not None:
        return object_key(*letter.object)
    return message_key(letter.published_at, letter.data, letter.own_attributes)


def attributes_to_put_back(letter: Letter, event_id: str) -> dict[str, str]:
    """The attributes of the message that is published again.

    A message is told what it was, because its id may name a run: the run on record is met, not a second one.
    An object's event needs no telling; its generation is its identity.

    Args:
        letter: the dead letter.
        event_id: the message's id when it failed; empty where no log tells. The letter's own then stands
            for it, so that a letter that is put back twice is at least one and the same.
    """
    if letter.object is not None:
        return letter.own_attributes
    return {
        **letter.own_attributes,
        REPLAYED_ID: letter.attributes.get(REPLAYED_ID) or event_id or f"dead-letter-{letter.id}",
        REPLAYED_PUBLISH_TIME: letter.published_at.isoformat(timespec="milliseconds"),
    }
