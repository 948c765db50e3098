"""Calls of Cloud Storage as injections see them: methods by their names in the discovery document, objects as `BUCKET/NAME`."""

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from starlette.types import Scope

from trainstack.publisher import Message
from trainstack.storage.api.routes import route_for
from trainstack.storage.objects.errors import RefusedError

_HEAD_BYTES = 64 * 1024
# In a multipart upload, the metadata precedes the bytes.
_NAME = re.compile(rb'"name"\s*:\s*("(?:[^"\\]|\\.)*")')


def method_of(scope: Scope) -> str:
    """The method's name, which no injection knows for a path that only the emulator has."""
    return _route(scope)[0]


def subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """`BUCKET/NAME` of the object, and of the destination if there is one; else the bucket's name."""
    _, path = _route(scope)
    bucket = path.get("bucket", "")
    name = path.get("object", "") or _inserted_name(scope, body)
    names = [f"{bucket}/{name}" if bucket and name else bucket or name]
    if "to_object" in path:
        names.append(f"{path.get('to_bucket', bucket)}/{path['to_object']}")
    return tuple(filter(None, names))


def notification_subjects(topic: str, messages: Sequence[Message]) -> tuple[str, ...]:
    """The subjects of a notification: the topic and each message's `BUCKET/NAME`."""
    return (topic, *(f"{fields.get('bucketId', '')}/{fields.get('objectId', '')}" for _, fields in messages))


def _route(scope: Scope) -> tuple[str, Mapping[str, str]]:
    try:
        route, path = route_for(scope)
    except RefusedError:
        return "", {}
    return route.name, path


def _inserted_name(scope: Scope, body: bytes) -> str:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    if names := query.get("name"):
        return str(names[0])
    if "uploadType" not in query and not scope["path"].endswith("/b"):
        return ""
    match = _NAME.search(body, 0, _HEAD_BYTES)
    try:
        return str(json.loads(match[1])) if match else ""
    except ValueError:
        return ""
