"""Notification configurations, and the messages for a change: written with it, published by the outbox."""

import json
from collections.abc import Mapping, Sequence

from trainstack.outbox import Outbox
from trainstack.publisher import Message, Publish
from trainstack.storage.objects.catalog import Catalog
from trainstack.storage.objects.records import NO_PAYLOAD, NotificationConfig, ObjectRecord
from trainstack.storage.objects.resource import object_text, rfc3339


class Notifications:
    """The configurations of every bucket, and the pending notifications by topic."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._configs: dict[str, list[NotificationConfig]] = {}
        self.outbox = Outbox(catalog)

    def configs(self, bucket: str) -> list[NotificationConfig]:
        """The bucket's configurations, in order of their ids."""
        if bucket not in self._configs:
            rows = self._catalog.rows(
                "SELECT id, body FROM notification_configs WHERE bucket = ? ORDER BY id", (bucket,)
            )
            self._configs[bucket] = [
                NotificationConfig(bucket=bucket, id=number, body=json.loads(body)) for number, body in rows
            ]
        return self._configs[bucket]

    def add(self, config: NotificationConfig) -> None:
        self._catalog.execute(
            "INSERT INTO notification_configs VALUES (?, ?, ?)",
            (config.bucket, config.id, json.dumps(config.body)),
        )
        self.forget(config.bucket)

    def remove(self, config: NotificationConfig) -> None:
        self._catalog.execute(
            "DELETE FROM notification_configs WHERE bucket = ? AND id = ?", (config.bucket, config.id)
        )
        self.forget(config.bucket)

    def forget(self, bucket: str) -> None:
        """Drop this bucket's cached configurations."""
        self._configs.pop(bucket, None)

    def owe(self, event: str, stored: ObjectRecord, *, now_us: int, **more: int) -> None:
        """Add a notification of what happened to a generation for every matching configuration.

        `more` are generations, by the attribute that names them.
        """
        for config in self.configs(stored.bucket):
            if config.asks_for(event, stored.name):
                # The publishing emulator adds its address to links: after a restart, it may be another one.
                has_payload = config.body["payload_format"] != NO_PAYLOAD
                data = object_text(stored, "", False).encode() if has_payload else b""
                self.outbox.owe(config.topic, data, _attributes(config, event, stored, now_us, more))


def with_links(publish: Publish, base_url: str) -> Publish:
    """`publish`, with the links of each payload below `base_url`."""

    def message_with_links(message: Message) -> Message:
        data, attributes = message
        if not data:
            return message
        resource = json.loads(data)
        links = {key: base_url + resource[key] for key in ("selfLink", "mediaLink")}
        return json.dumps({**resource, **links}).encode(), attributes

    def publishing(topic: str, messages: Sequence[Message]) -> None:
        publish(topic, [message_with_links(message) for message in messages])

    return publishing


def _attributes(
    config: NotificationConfig, event: str, stored: ObjectRecord, now_us: int, more: Mapping[str, int]
) -> dict[str, str]:
    """Source: https://cloud.google.com/storage/docs/pubsub-notifications#attributes"""
    return {
        **config.body.get("custom_attributes", {}),
        "notificationConfig": f"projects/_/buckets/{config.bucket}/notificationConfigs/{config.id}",
        "eventType": event,
        "payloadFormat": config.body["payload_format"],
        "bucketId": stored.bucket,
        "objectId": stored.name,
        "objectGeneration": str(stored.generation),
        "eventTime": rfc3339(now_us, digits=6),
        **{name: str(generation) for name, generation in more.items() if generation},
    }
