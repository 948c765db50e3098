"""One dead letter: the event that failed, and the message that replays it. Pure.

Pub/Sub forwards a failing message as a new one with the same bytes and attributes, plus four more attributes:
https://cloud.google.com/pubsub/docs/handling-failures#how_dead_letter_topics_work
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
"""How much earlier than an event its log lines may seem to be: the clocks of services differ."""

# https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names
_SUBSCRIPTION_ID = re.compile(r"[A-Za-z][A-Za-z0-9._~+%-]{2,254}")
_COUNT = re.compile(r"[0-9]{1,9}")


class NoSourceError(Exception):
    """The message names no source subscription, or one that cannot be trusted."""


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A message on the dead-letter topic. `id` is its id there; `ack_id` is this process's claim on it.

    Any publisher may have chosen its bytes and attributes, so no value in them may prevent the other letters from being
    read. `project` is the project of the subscription that the letter was pulled from.
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
        """The full name of the subscription in this project that the letter names as its source.

        Raises:
            NoSourceError: the message names none, an impossible one, or one of another project. Otherwise a
                publisher of dead letters could choose where they are published with the replayer's permissions.
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
    def deliveries(self) -> int | None:
        """The approximate number of deliveries, None if unknown; Pub/Sub counts on a best-effort basis."""
        found = self.attributes.get(f"{_FORWARDED}SourceDeliveryCount", "")
        return int(found) if _COUNT.fullmatch(found) else None

    @property
    def published_at(self) -> datetime:
        """When the event was first published, even if it was replayed since; if unknown, when it was dead-lettered."""
        published = time_or(self.attributes.get(f"{_FORWARDED}SourceTopicPublishTime"), self.given_up_at)
        return first_published(time_or(self.attributes.get(REPLAYED_PUBLISH_TIME), published), published)

    @property
    def failed_since(self) -> datetime:
        """A time before every failure of the event, whatever time the letter claims."""
        return min(max(self.published_at, _EPOCH), self.given_up_at) - CLOCKS_APART

    @property
    def object(self) -> tuple[str, str, str] | None:
        """Bucket, name and generation for a bucket's event, None for a message."""
        bucket, name, generation = (
            self.attributes.get(key, "") for key in ("bucketId", "objectId", "objectGeneration")
        )
        is_object = self.attributes.get("eventType") and bucket and name and generation
        return (bucket, name, generation) if is_object else None

    @property
    def own_attributes(self) -> dict[str, str]:
        """The attributes that the event had when it was published."""
        return {
            name: value
            for name, value in self.attributes.items()
            # Only the service may set names that begin with "goog".
            if not name.startswith((_FORWARDED, _RESERVED))
            and name not in (REPLAYED_ID, REPLAYED_PUBLISH_TIME)
        }


def event_key(letter: Letter) -> str:
    """The key under which a function logs why the event failed."""
    if letter.object is not None:
        return object_key(*letter.object)
    return message_key(letter.published_at, letter.data, letter.own_attributes)


def attributes_to_put_back(letter: Letter, event_id: str) -> dict[str, str]:
    """The attributes of the message that replays the letter.

    A message carries its original id, because the id may name a run: the replay then finds that run instead of starting
    a second one. An object's event does not need it; its generation identifies it.

    Args:
        letter: the dead letter.
        event_id: the message's id when it failed; empty if no log has it. The letter's id then replaces it, so that
            replaying a letter twice still yields the same event.
    """
    if letter.object is not None:
        return letter.own_attributes
    return {
        **letter.own_attributes,
        REPLAYED_ID: letter.attributes.get(REPLAYED_ID) or event_id or f"dead-letter-{letter.id}",
        REPLAYED_PUBLISH_TIME: letter.published_at.isoformat(timespec="milliseconds"),
    }
