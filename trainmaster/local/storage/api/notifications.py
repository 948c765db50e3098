"""Notification configurations: insert, get, list, delete."""

from starlette.responses import Response

from trainmaster.local.storage.api.call import (
    Call,
    Json,
    custom_metadata,
    json_answer,
    no_content,
    text_field,
)
from trainmaster.local.storage.objects.errors import RefusedError, invalid
from trainmaster.local.storage.objects.records import EventType, NotificationConfig
from trainmaster.local.storage.objects.resource import notification_json

_SERVICE_PREFIX = "//pubsub.googleapis.com/"
MAX_CONFIGS_PER_BUCKET = 100
_MAX_PER_EVENT = 10
_PAYLOADS = {"JSON_API_V1": True, "NONE": False}


async def insert(call: Call) -> Response:
    """A new configuration. The topic is not looked up: it may come later, and is told everything then."""
    body = await call.json()
    store = call.store
    bucket = call.path["bucket"]
    with store.changing():
        store.bucket(bucket)
        others = store.notifications.configs(bucket)
        config = NotificationConfig(
            bucket=bucket,
            id=1 + max((each.id for each in others), default=0),
            topic=_topic(text_field(body, "topic")),
            event_types=_event_types(body.get("event_types")),
            prefix=text_field(body, "object_name_prefix"),
            attributes=custom_metadata(body.get("custom_attributes") or {}),
            payload=_payload(text_field(body, "payload_format")),
        )
        _check_limits([*others, config])
        store.notifications.add(config)
    return json_answer(notification_json(config, call.base_url))


async def get(call: Call) -> Response:
    return json_answer(notification_json(_find(call), call.base_url))


async def list_all(call: Call) -> Response:
    found = _configs(call)
    answer: Json = {"kind": "storage#notifications"}
    if found:
        answer["items"] = [notification_json(config, call.base_url) for config in found]
    return json_answer(answer)


async def delete(call: Call) -> Response:
    with call.store.changing():
        call.store.notifications.remove(_find(call))
    return no_content()


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
    topic = text.removeprefix(_SERVICE_PREFIX)
    match topic.split("/"):
        case ["projects", project, "topics", name] if project and name:
            return topic
    raise invalid(f"Invalid topic: {text!r}; '{_SERVICE_PREFIX}projects/PROJECT/topics/TOPIC' is expected.")


def _event_types(value: object) -> tuple[EventType, ...]:
    if value is None:
        return ()
    known = [str(each) for each in EventType]
    if not isinstance(value, list) or not all(each in known for each in value):
        raise invalid(f"Invalid event_types: {value!r}; a list of {known} is allowed.")
    return tuple(EventType(each) for each in value)


def _payload(text: str) -> bool:
    if text not in _PAYLOADS:
        raise invalid(f"Invalid payload_format: {text!r}; one of {list(_PAYLOADS)} is required.")
    return _PAYLOADS[text]


def _check_limits(configs: list[NotificationConfig]) -> None:
    """Source: https://cloud.google.com/storage/docs/pubsub-notifications#limitations"""
    if len(configs) > MAX_CONFIGS_PER_BUCKET:
        raise invalid(f"A bucket takes at most {MAX_CONFIGS_PER_BUCKET} notification configurations.")
    for event in EventType:
        if sum(not each.event_types or event in each.event_types for each in configs) > _MAX_PER_EVENT:
            raise invalid(f"A bucket takes at most {_MAX_PER_EVENT} notification configurations for {event}.")
