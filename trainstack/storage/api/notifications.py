"""Notification configurations: insert, get, list, delete."""

from starlette.responses import Response

from trainstack.storage.api.call import (
    Call,
    Json,
    custom_metadata,
    json_answer,
    text_field,
)
from trainstack.storage.objects.errors import RefusedError, invalid
from trainstack.storage.objects.records import EVENTS, PAYLOADS, PUBSUB_PREFIX, NotificationConfig
from trainstack.storage.objects.resource import notification_json


async def insert(call: Call) -> Response:
    """Create a configuration.

    The topic is not checked: it may be created later, and then receives all pending notifications.
    """
    asked = await call.json("Notification")
    store, bucket = call.store, call.path["bucket"]
    body = {
        "topic": _topic(text_field(asked, "topic")),
        "payload_format": _one_of(PAYLOADS, "payload_format", asked.get("payload_format")),
        "event_types": [_one_of(EVENTS, "event_types", event) for event in _list(asked, "event_types")],
        "object_name_prefix": text_field(asked, "object_name_prefix"),
        "custom_attributes": custom_metadata(asked.get("custom_attributes") or {}),
    }
    with store.changing():
        store.bucket(bucket)
        number = 1 + max((existing.id for existing in store.notifications.configs(bucket)), default=0)
        given = {key: value for key, value in body.items() if value}
        config = NotificationConfig(bucket=bucket, id=number, body=given)
        store.notifications.add(config)
    return json_answer(notification_json(config, call.base_url))


async def get(call: Call) -> Response:
    return json_answer(notification_json(_find(call), call.base_url))


async def list_all(call: Call) -> Response:
    configs = _configs(call)
    answer: Json = {"kind": "storage#notifications"}
    if configs:
        answer["items"] = [notification_json(config, call.base_url) for config in configs]
    return json_answer(answer)


async def delete(call: Call) -> Response:
    with call.store.changing():
        call.store.notifications.remove(_find(call))
    return Response(status_code=204)


def _configs(call: Call) -> list[NotificationConfig]:
    bucket = call.store.bucket(call.path["bucket"])
    return call.store.notifications.configs(bucket.name)


def _find(call: Call) -> NotificationConfig:
    wanted = call.path["notification"]
    for config in _configs(call):
        if str(config.id) == wanted:
            return config
    raise RefusedError(404, "notFound", f"No such notification configuration: {call.path['bucket']}/{wanted}")


def _topic(text: str) -> str:
    match text.removeprefix(PUBSUB_PREFIX).split("/"):
        case ["projects", project, "topics", name] if project and name:
            return PUBSUB_PREFIX + text.removeprefix(PUBSUB_PREFIX)
    raise invalid(f"Invalid topic: {text!r}; expected '{PUBSUB_PREFIX}projects/PROJECT/topics/TOPIC'.")


def _list(body: Json, key: str) -> list[object]:
    value = body.get(key) or []
    if not isinstance(value, list):
        raise invalid(f"Invalid value for {key}: {value!r:.200}; expected a list.")
    return value


def _one_of(known: tuple[str, ...], key: str, value: object) -> object:
    """Raises `RefusedError` (400) for another value."""
    if value not in known:
        raise invalid(f"Invalid value for {key}: {value!r:.200}; expected one of {', '.join(known)}.")
    return value
