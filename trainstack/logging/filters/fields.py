"""The fields of a log entry, and how to read one from an entry's JSON form.

Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry and, for absent fields,
https://cloud.google.com/logging/docs/view/logging-query-language ("Missing fields", "Defaulted fields").
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from trainstack.logging.filters.terms import FilterError

Getter: TypeAlias = Callable[[Mapping[str, object]], tuple[object, ...]]
"""The values at a path: none if it is missing, several if the path crosses a list."""


class Kind(Enum):
    """How a field behaves in a comparison."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    INSTANT = "instant"
    SEVERITY = "severity"
    FREE = "free"
    """A payload or a map: any shape; missing if absent, without a default."""


_HTTP = {
    "requestMethod": Kind.TEXT, "requestUrl": Kind.TEXT, "requestSize": Kind.NUMBER, "status": Kind.NUMBER,
    "responseSize": Kind.NUMBER, "userAgent": Kind.TEXT, "remoteIp": Kind.TEXT, "serverIp": Kind.TEXT,
    "referer": Kind.TEXT, "latency": Kind.TEXT, "cacheLookup": Kind.FLAG, "cacheHit": Kind.FLAG,
    "cacheValidatedWithOriginServer": Kind.FLAG, "cacheFillBytes": Kind.NUMBER, "protocol": Kind.TEXT,
}  # fmt: skip

FIELDS: Mapping[str, Kind | Mapping[str, Kind]] = {
    "logName": Kind.TEXT,
    "resource": {"type": Kind.TEXT, "labels": Kind.FREE},
    "protoPayload": Kind.FREE,
    "textPayload": Kind.TEXT,
    "jsonPayload": Kind.FREE,
    "timestamp": Kind.INSTANT,
    "receiveTimestamp": Kind.INSTANT,
    "severity": Kind.SEVERITY,
    "insertId": Kind.TEXT,
    "httpRequest": _HTTP,
    "labels": Kind.FREE,
    "metadata": {"systemLabels": Kind.FREE, "userLabels": Kind.FREE},
    "operation": {"id": Kind.TEXT, "producer": Kind.TEXT, "first": Kind.FLAG, "last": Kind.FLAG},
    "trace": Kind.TEXT,
    "spanId": Kind.TEXT,
    "traceSampled": Kind.FLAG,
    "sourceLocation": {"file": Kind.TEXT, "line": Kind.NUMBER, "function": Kind.TEXT},
    "split": {"uid": Kind.TEXT, "index": Kind.NUMBER, "totalSplits": Kind.NUMBER},
}
DEFAULTS: Mapping[Kind, object] = {
    Kind.TEXT: "",
    Kind.NUMBER: 0,
    Kind.FLAG: False,
    Kind.SEVERITY: "DEFAULT",
}


def resolve(path: tuple[str, ...]) -> tuple[tuple[str, ...], Kind]:
    """The path in an entry's spelling, and the kind of its field.

    Field names match regardless of case and underscores (`json_payload`), payload keys exactly.

    Raises:
        FilterError: log entries have no such field.
    """
    name, kind = _lookup(FIELDS, path[0], path)
    if isinstance(kind, Kind):
        return _field_at_end((name,), kind, path)
    if len(path) == 1:
        return (name,), Kind.FREE
    inner_name, inner = _lookup(kind, path[1], path)
    return _field_at_end((name, inner_name), inner, path)


def _lookup(
    fields: Mapping[str, Kind | Mapping[str, Kind]] | Mapping[str, Kind], asked: str, path: tuple[str, ...]
) -> tuple[str, Kind | Mapping[str, Kind]]:
    folded = asked.replace("_", "").lower()
    for name, kind in fields.items():
        if name.lower() == folded:
            return name, kind
    allowed = ", ".join(fields)
    raise FilterError(
        f"a log entry has no field {'.'.join(path)!r}; expected instead of {asked!r} one of {allowed}"
    )


def _field_at_end(
    resolved: tuple[str, ...], kind: Kind | Mapping[str, Kind], path: tuple[str, ...]
) -> tuple[tuple[str, ...], Kind]:
    rest = path[len(resolved) :]
    if kind is Kind.FREE:
        return resolved + rest, Kind.FREE
    if rest or not isinstance(kind, Kind):
        raise FilterError(
            f"a log entry has no field {'.'.join(path)!r}: {'.'.join(resolved)} has no subfields"
        )
    return resolved, kind


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
