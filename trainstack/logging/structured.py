"""Turns a line of a program's output into a log entry, as the platform does.

Source: https://cloud.google.com/logging/docs/structured-logging
"""

import json
from collections.abc import Mapping
from typing import Literal, TypeAlias

from trainstack.instants import format_instant, parse_instant
from trainstack.json_bodies import finite_number, is_too_deep, no_number
from trainstack.logging.entry import SURFACE, checked
from trainstack.logging.filters.fields import FIELDS, severity_name

Stream: TypeAlias = Literal["stdout", "stderr"]

MAX_LINE_ENTRY_BYTES = 240 * 1024
"""How much of an entry's 256 KiB a line may fill; the rest is for its ids and labels."""

_LONGEST_ESCAPE = 6
_PREFIX = "logging.googleapis.com/"
_LIFTED = {
    "httpRequest": "httpRequest",
    f"{_PREFIX}insertId": "insertId",
    f"{_PREFIX}labels": "labels",
    f"{_PREFIX}operation": "operation",
    f"{_PREFIX}sourceLocation": "sourceLocation",
    f"{_PREFIX}spanId": "spanId",
    f"{_PREFIX}trace": "trace",
    f"{_PREFIX}trace_sampled": "traceSampled",
}


def entries_from_line(line: str, stream: Stream, *, tag: str | None = None) -> list[dict[str, object]]:
    """As `entry_from_line`; a line that is too large for one entry becomes several, each a part of its text.

    Each has at most MAX_LINE_ENTRY_BYTES bytes of JSON, and the severity of the whole line.
    """
    entry = entry_from_line(line, stream, tag=tag)
    if len(line) * _LONGEST_ESCAPE < MAX_LINE_ENTRY_BYTES or _size(entry) <= MAX_LINE_ENTRY_BYTES:
        return [entry]
    parts = _parts(line.rstrip("\r\n"), most=MAX_LINE_ENTRY_BYTES - _size(_plain("", stream, tag)))
    return [{**_plain(part, stream, tag), "severity": entry["severity"]} for part in parts]


def entry_from_line(line: str, stream: Stream, *, tag: str | None = None) -> dict[str, object]:
    """The part of a LogEntry that a line determines: severity, payload, and its special keys.

    A line that is one JSON object becomes `jsonPayload`; `severity`, `time` or `timestamp`, `httpRequest` and
    the `logging.googleapis.com/` keys are moved out of it, and a lone `message` becomes `textPayload`. Any
    other line of stdout is `textPayload`; one of stderr has severity ERROR and, if `tag` names the replica,
    the `jsonPayload` shape of training jobs. Never raises: an invalid special key stays in the payload.
    """
    text = line.rstrip("\r\n")
    payload = _object(text)
    if payload is None:
        return _plain(text, stream, tag)
    fields: dict[str, object] = {"severity": "ERROR" if stream == "stderr" else "DEFAULT"}
    rest = {key: value for key, value in payload.items() if not _lift(key, value, fields)}
    if set(rest) == {"message"} and isinstance(rest["message"], str):
        return {**fields, "textPayload": rest["message"]}
    return {**fields, "jsonPayload": rest}


def _parts(text: str, *, most: int) -> list[str]:
    """The text in order, halved until each part has at most `most` bytes in JSON."""
    if _size(text) <= most:
        return [text]
    middle = len(text) // 2
    return _parts(text[:middle], most=most) + _parts(text[middle:], most=most)


def _size(value: object) -> int:
    """The bytes of JSON; a JSON line may hold half a surrogate pair, which is stored as `?`."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))


def _object(text: str) -> dict[str, object] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, parse_constant=no_number, parse_float=finite_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_too_deep(value) else None


def _plain(text: str, stream: Stream, tag: str | None) -> dict[str, object]:
    if stream == "stdout":
        return {"severity": "INFO", "textPayload": text}
    if tag is None:
        return {"severity": "ERROR", "textPayload": text}
    return {
        "severity": "ERROR",
        "jsonPayload": {"attrs": {"tag": tag}, "levelname": "ERROR", "message": text},
    }


def _lift(key: str, value: object, fields: dict[str, object]) -> bool:
    """Whether the key is special and its value valid; if so, moves it."""
    try:
        if key == "severity":
            fields["severity"] = severity_name(value)
        elif key in ("time", "timestamp"):
            fields["timestamp"] = format_instant(_instant(value))
        elif name := _LIFTED.get(key):
            lifted = _labels(value) if name == "labels" else value
            faults: list[str] = []
            fitting = checked(FIELDS[name], lifted, name, faults)
            if faults or SURFACE.body_faults("LogEntry", {name: fitting}):
                return False
            fields[name] = fitting
        else:
            return False
    except (ValueError, TypeError, KeyError, OverflowError):
        return False
    return True


def _labels(value: object) -> dict[str, str]:
    """Labels as strings; TypeError if they are not labels."""
    if not isinstance(value, dict) or not all(isinstance(one, str | int | float) for one in value.values()):
        raise TypeError("labels must be pairs of strings")
    return {key: one if isinstance(one, str) else json.dumps(one) for key, one in value.items()}


def _instant(value: object) -> int:
    """An RFC 3339 timestamp, or {"seconds": …, "nanos": …}."""
    if isinstance(value, Mapping):
        return int(value["seconds"]) * 1_000_000_000 + int(value.get("nanos", 0))
    return parse_instant(str(value))
