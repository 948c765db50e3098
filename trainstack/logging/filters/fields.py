"""The fields of a log entry with its severities, and how to read one from an entry's JSON form.

Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry and, for absent fields,
https://cloud.google.com/logging/docs/view/logging-query-language ("Missing fields", "Defaulted fields").
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from trainstack.logging.filters.terms import LogFilterError

Getter: TypeAlias = Callable[[Mapping[str, object]], tuple[object, ...]]
"""The values at a path: none if it is missing, several if the path crosses a list."""


class FieldKind(Enum):
    """What a field holds, and so how it is compared."""

    TEXT = "a string"
    NUMBER = "a number"
    FLAG = "true or false"
    LONG = "a 64-bit number"
    """Text in JSON: https://protobuf.dev/programming-guides/json/"""
    INSTANT = "a timestamp"
    DURATION = "a duration such as 1.5s"
    SEVERITY = "a severity"
    FREE = "an object"
    """A payload or a map: any shape; missing if absent, without a default."""


_HTTP = {
    "requestMethod": FieldKind.TEXT, "requestUrl": FieldKind.TEXT, "requestSize": FieldKind.LONG, "status": FieldKind.NUMBER,
    "responseSize": FieldKind.LONG, "userAgent": FieldKind.TEXT, "remoteIp": FieldKind.TEXT, "serverIp": FieldKind.TEXT,
    "referer": FieldKind.TEXT, "latency": FieldKind.DURATION, "cacheLookup": FieldKind.FLAG, "cacheHit": FieldKind.FLAG,
    "cacheValidatedWithOriginServer": FieldKind.FLAG, "cacheFillBytes": FieldKind.LONG, "protocol": FieldKind.TEXT,
}  # fmt: skip

RANKS = {
    "DEFAULT": 0,
    "DEBUG": 100,
    "INFO": 200,
    "NOTICE": 300,
    "WARNING": 400,
    "ERROR": 500,
    "CRITICAL": 600,
    "ALERT": 700,
    "EMERGENCY": 800,
}
NAMES = {rank: name for name, rank in RANKS.items()}
"""Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity"""

Kind: TypeAlias = "FieldKind | Mapping[str, Kind]"

FIELDS: Mapping[str, Kind] = {
    "logName": FieldKind.TEXT,
    "resource": {"type": FieldKind.TEXT, "labels": FieldKind.FREE},
    "protoPayload": FieldKind.FREE,
    "textPayload": FieldKind.TEXT,
    "jsonPayload": FieldKind.FREE,
    "timestamp": FieldKind.INSTANT,
    "receiveTimestamp": FieldKind.INSTANT,
    "severity": FieldKind.SEVERITY,
    "insertId": FieldKind.TEXT,
    "httpRequest": _HTTP,
    "labels": FieldKind.FREE,
    "metadata": {"systemLabels": FieldKind.FREE, "userLabels": FieldKind.FREE},
    "operation": {
        "id": FieldKind.TEXT,
        "producer": FieldKind.TEXT,
        "first": FieldKind.FLAG,
        "last": FieldKind.FLAG,
    },
    "trace": FieldKind.TEXT,
    "spanId": FieldKind.TEXT,
    "traceSampled": FieldKind.FLAG,
    "sourceLocation": {"file": FieldKind.TEXT, "line": FieldKind.LONG, "function": FieldKind.TEXT},
    "split": {"uid": FieldKind.TEXT, "index": FieldKind.NUMBER, "totalSplits": FieldKind.NUMBER},
}
DEFAULTS: Mapping[FieldKind, object] = {
    FieldKind.TEXT: "",
    FieldKind.NUMBER: 0,
    FieldKind.LONG: 0,
    FieldKind.FLAG: False,
    FieldKind.SEVERITY: "DEFAULT",
}


def fold(text: str) -> str:
    """Text folded for comparison: the language ignores case."""
    return text.lower()


def severity_name(value: object) -> str:
    """The severity's name, from a name in any case or a number (as a number or as text).

    Raises:
        ValueError: unknown severity.
    """
    if isinstance(value, str) and value.upper() in RANKS:
        return value.upper()
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, int) and not isinstance(number, bool) and number in NAMES:
        return NAMES[number]
    raise ValueError(f"{value!r} is not a severity; expected one of {', '.join(RANKS)} or its number")


def resolve(path: tuple[str, ...]) -> tuple[tuple[str, ...], FieldKind]:
    """The path in an entry's spelling, and the kind of its field.

    Field names match regardless of case and underscores (`json_payload`), payload keys exactly.

    Raises:
        LogFilterError: log entries have no such field.
    """
    resolved: tuple[str, ...] = ()
    kind: Kind = FIELDS
    for depth, asked in enumerate(path):
        if kind is FieldKind.FREE:
            return (*resolved, *path[depth:]), kind
        if isinstance(kind, FieldKind):
            raise LogFilterError(
                f"a log entry has no field {'.'.join(path)!r}: {'.'.join(resolved)} has no subfields"
            )
        name, kind = _lookup(kind, asked, path)
        resolved = (*resolved, name)
    return resolved, kind if isinstance(kind, FieldKind) else FieldKind.FREE


def _lookup(fields: Mapping[str, "Kind"], asked: str, path: tuple[str, ...]) -> tuple[str, "Kind"]:
    folded = asked.replace("_", "").lower()
    for name, kind in fields.items():
        if name.lower() == folded:
            return name, kind
    allowed = ", ".join(fields)
    raise LogFilterError(
        f"a log entry has no field {'.'.join(path)!r}; expected instead of {asked!r} one of {allowed}"
    )


def getter(path: tuple[str, ...]) -> Getter:
    """Reads the path in an entry; a key matches exactly or, failing that, regardless of case."""
    first, rest = path[0], path[1:]

    def get(entry: Mapping[str, object]) -> tuple[object, ...]:
        value = entry.get(first, _MISSING)
        for depth, key in enumerate(rest):
            if isinstance(value, list):
                return tuple(one for item in value for one in getter(("_", *rest[depth:]))({"_": item}))
            value = _member(value, key)
            if value is _MISSING:
                return ()
        if isinstance(value, list):
            return tuple(value)
        return () if value is _MISSING else (value,)

    return get


_MISSING = object()


def _member(value: object, key: str) -> object:
    if not isinstance(value, dict):
        return _MISSING
    if key in value:
        return value[key]
    folded = key.lower()
    return next((inner for name, inner in value.items() if name.lower() == folded), _MISSING)
