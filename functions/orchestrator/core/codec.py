"""Frozen dataclasses as JSON documents and back.

Absent (`None`) fields are left out, times are RFC 3339 in UTC, enums are their values.
Unknown keys are passed over, so that an older reader understands a newer record.
"""

import dataclasses
import functools
import types
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_Value = TypeVar("_Value")


def encoded(value: object) -> object:
    """The value as `json.dumps` takes it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: encoded(part) for name, part in fields if part is not None}
    match value:
        case Enum():
            return value.value
        case datetime():
            return encoded_time(value)
        case Mapping():
            return {str(key): encoded(part) for key, part in value.items()}
        case tuple() | list():
            return [encoded(part) for part in value]
        case _:
            return value


def encoded_time(moment: datetime) -> str:
    """RFC 3339 with microseconds and `Z`.

    Raises:
        ValueError: the time is naive; nobody could say which moment it means.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def decoded_time(text: str) -> datetime:
    """An aware time from RFC 3339; digits beyond microseconds are cut.

    Raises:
        ValueError: the text is no RFC 3339 time with a zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from error


def decoded(kind: type[_Value], document: object) -> _Value:
    """The value of type `kind` that `encoded` turned into `document`.

    Raises:
        ValueError: the document does not hold such a value; the message names the place.
    """
    result: _Value = _decoded(kind, document, "$")
    return result


def _decoded(kind: object, document: object, path: str) -> Any:  # Any: its type is the value of `kind`
    arguments = get_args(kind)
    origin = get_origin(kind)
    result: object
    if origin in (Union, types.UnionType):
        (present,) = (argument for argument in arguments if argument is not type(None))
        result = None if document is None else _decoded(present, document, path)
    elif origin is tuple:
        parts = _expected(document, list, path)
        result = tuple(_decoded(arguments[0], part, f"{path}[{i}]") for i, part in enumerate(parts))
    elif origin is not None:  # Mapping[str, X]
        items = _expected(document, dict, path).items()
        result = {key: _decoded(arguments[1], part, f"{path}.{key}") for key, part in items}
    elif dataclasses.is_dataclass(kind):
        result = _dataclass(kind, _expected(document, dict, path), path)  # type: ignore[arg-type]  # never an instance here
    elif kind is object:
        result = document
    else:
        result = _scalar(kind, document, path)
    return result


def _dataclass(kind: type, document: Mapping[str, object], path: str) -> object:
    hints = _hints(kind)
    values: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        if field.name in document:
            values[field.name] = _decoded(hints[field.name], document[field.name], f"{path}.{field.name}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error


@functools.cache
def _hints(kind: type) -> Mapping[str, object]:
    return get_type_hints(kind)


def _scalar(kind: object, document: object, path: str) -> object:
    try:
        if kind is datetime:
            return decoded_time(_expected(document, str, path))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return kind(document)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if kind is float and isinstance(document, int) and not isinstance(document, bool):
        return float(document)
    return _expected(document, kind, path)  # type: ignore[arg-type]  # only str, int, float and bool are left


def _expected(document: object, kind: type[_Value], path: str) -> _Value:
    if not isinstance(document, kind) or (isinstance(document, bool) and kind is not bool):
        raise ValueError(f"{path}: {kind.__name__} expected, found {type(document).__name__}")
    return document
