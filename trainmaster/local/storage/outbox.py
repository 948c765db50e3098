"""Notifications owed: written in the transaction of the change they tell of, removed when Pub/Sub has them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.local.storage.catalog import Catalog
from trainmaster.local.storage.records import EventType, NotificationConfig, StoredObject
from trainmaster.local.storage.resource import object_json, rfc3339

MAX_CONFIGS_PER_BUCKET = 100
_BATCH = 100
_LINKS = ("selfLink", "mediaLink")
_NO_BASE = ""


@dataclass(frozen=True, kw_only=True)
class Owed:
    """One notification: `data` is the object resource as JSON, empty for configurations without a payload."""

    id: int
    data: bytes
    attributes: Mapping[str, str]


class Outbox:
    """The configurations and what is owed to them. The store's lock guards every call."""

    def __init__(self, catalog: Catalog) -> None:
        self._db = catalog.db
        self._configs: dict[str, list[NotificationConfig]] = {}

    def configs(self, bucket: str) -> list[NotificationConfig]:
        """In the order of their ids."""
        if bucket not in self._configs:
            rows = self._db.execute(
                "SELECT * FROM notification_configs WHERE bucket = ? ORDER BY id", (bucket,)
            )
            self._configs[bucket] = [_config(row) for row in rows]
        return self._configs[bucket]

    def add_config(self, config: NotificationConfig) -> None:
        self._db.execute(
            "INSERT INTO notification_configs VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                config.bucket,
                int(config.id),
                config.topic,
                json.dumps(config.event_types),
                config.prefix,
                json.dumps(dict(config.attributes)),
                config.payload,
            ),
        )
        self.forget(config.bucket)

    def remove_config(self, bucket: str, config_id: str) -> None:
        self._db.execute(
            "DELETE FROM notification_configs WHERE bucket = ? AND id = ?", (bucket, int(config_id))
        )
        self.forget(bucket)

    def forget(self, bucket: str) -> None:
        """Read this bucket's configurations again when they are next needed."""
        self._configs.pop(bucket, None)

    def owe(self, event: EventType, stored: StoredObject, *, now_us: int, other_generation: int = 0) -> None:
        """Owe this event to every configuration that asks for it.

        `other_generation` is what a FINALIZE overwrote, or what a DELETE was overwritten by.
        """
        for config in self.configs(stored.bucket):
            if config.event_types and event not in config.event_types:
                continue
            if not stored.name.startswith(config.prefix):
                continue
            attributes = _attributes(config, event, stored, now_us=now_us, other_generation=other_generation)
            resource = json.dumps(object_json(stored, _NO_BASE)) if config.payload else ""
            self._db.execute(
                "INSERT INTO outbox (topic, attributes, resource) VALUES (?, ?, ?)",
                (config.topic, json.dumps(attributes), resource),
            )

    def topics(self) -> list[str]:
        """The topics that something is owed to."""
        return [topic for (topic,) in self._db.execute("SELECT DISTINCT topic FROM outbox ORDER BY topic")]

    def owed(self, topic: str, base_url: str) -> list[Owed]:
        """The oldest notifications owed to a topic, at most a hundred, their links below `base_url`."""
        rows = self._db.execute(
            "SELECT id, attributes, resource FROM outbox WHERE topic = ? ORDER BY id LIMIT ?", (topic, _BATCH)
        )
        return [
            Owed(id=each, data=_with_base(resource, base_url), attributes=json.loads(attributes))
            for each, attributes, resource in rows
        ]

    def settle(self, topic: str, through_id: int) -> None:
        """Forget what this topic has received."""
        self._db.execute("DELETE FROM outbox WHERE topic = ? AND id <= ?", (topic, through_id))


def _attributes(
    config: NotificationConfig, event: EventType, stored: StoredObject, *, now_us: int, other_generation: int
) -> dict[str, str]:
    """Source: https://cloud.google.com/storage/docs/pubsub-notifications#attributes"""
    attributes = {
        **config.attributes,
        "notificationConfig": f"projects/_/buckets/{config.bucket}/notificationConfigs/{config.id}",
        "eventType": str(event),
        "payloadFormat": "JSON_API_V1" if config.payload else "NONE",
        "bucketId": stored.bucket,
        "objectId": stored.name,
        "objectGeneration": str(stored.generation),
        "eventTime": rfc3339(now_us, digits=6),
    }
    if other_generation:
        key = "overwroteGeneration" if event is EventType.FINALIZE else "overwrittenByGeneration"
        attributes[key] = str(other_generation)
    return attributes


def _with_base(resource: str, base_url: str) -> bytes:
    if not resource:
        return b""
    fields = json.loads(resource)
    for link in _LINKS:
        fields[link] = base_url + fields[link]
    return json.dumps(fields).encode()


def _config(row: tuple[str, int, str, str, str, str, int]) -> NotificationConfig:
    bucket, number, topic, event_types, prefix, attributes, payload = row
    return NotificationConfig(
        bucket=bucket,
        id=str(number),
        topic=topic,
        event_types=tuple(EventType(each) for each in json.loads(event_types)),
        prefix=prefix,
        attributes=json.loads(attributes),
        payload=bool(payload),
    )
