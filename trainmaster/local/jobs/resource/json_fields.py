"""The names in a JSON body, held against the message they are meant for."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_FREE_FORM = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.Any"})


def snake_case(name: str) -> str:
    """`displayName` and `display_name` both give `display_name`."""
    return re.sub(r"(?<!^)[A-Z]", lambda found: "_" + found.group(), name).lower()


def unknown_fields(body: Mapping[str, object], descriptor: Descriptor) -> list[str]:
    """One sentence, in the service's words, for each name that the message does not have; all of them at once."""
    return [
        f"Invalid JSON payload received. Unknown name {name!r} at {path!r}: Cannot find field."
        for name, path in _unknown(body, descriptor, snake_case(descriptor.name))
    ]


def _unknown(body: object, descriptor: Descriptor, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(body, Mapping) or descriptor.full_name in _FREE_FORM:
        return
    # The JSON mapping takes a field's camelCase name and its original one.
    fields: dict[str, Any] = {}
    for field in descriptor.fields:
        fields[field.json_name] = fields[field.name] = field
    for name, value in body.items():
        field = fields.get(name)
        if field is None:
            yield str(name), path
        elif _has_fields(field):
            for at, item in _items(value):
                yield from _unknown(item, field.message_type, f"{path}.{field.name}{at}")


def _has_fields(field: FieldDescriptor) -> bool:
    message = field.message_type
    # Durations and timestamps are strings in JSON, and a map's keys are the caller's own.
    return (
        message is not None
        and not message.GetOptions().map_entry
        and message.file.package != "google.protobuf"
    )


def _items(value: object) -> list[tuple[str, object]]:
    return [(f"[{at}]", item) for at, item in enumerate(value)] if isinstance(value, list) else [("", value)]
