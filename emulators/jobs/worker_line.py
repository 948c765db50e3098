"""A line that a replica printed, as the payload of a log entry.

Source: https://cloud.google.com/logging/docs/structured-logging, read 2026-11;
the shape of standard error's entries comes from logs published in public repositories.
"""

import json
from dataclasses import dataclass, field

from emulators.process import Stream

_SEVERITIES = frozenset(
    {"DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"}
)
_BY_STREAM = {Stream.STDOUT: "INFO", Stream.STDERR: "ERROR"}


@dataclass(frozen=True, kw_only=True)
class Payload:
    """The fields of an entry that come from the line, and its severity."""

    severity: str
    fields: dict[str, object] = field(default_factory=dict)


def payload_of(line: str, stream: Stream, task_name: str) -> Payload:
    """What `line` becomes: a JSON object is the `jsonPayload`, standard error a message with its tag, the rest text."""
    structured = _object(line)
    if structured is not None:
        return _lifted(structured, default=_BY_STREAM[stream])
    if stream is Stream.STDERR:
        payload = {"message": line, "levelname": "ERROR", "attrs": {"tag": task_name}}
        return Payload(severity="ERROR", fields={"jsonPayload": payload})
    return Payload(severity=_BY_STREAM[stream], fields={"textPayload": line})


def _object(line: str) -> dict[str, object] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _lifted(payload: dict[str, object], *, default: str) -> Payload:
    severity = payload.pop("severity", None)
    known = severity.upper() if isinstance(severity, str) else ""
    fields: dict[str, object] = {}
    for key, name in (
        ("logging.googleapis.com/insertId", "insertId"),
        ("logging.googleapis.com/labels", "labels"),
        ("logging.googleapis.com/operation", "operation"),
        ("logging.googleapis.com/sourceLocation", "sourceLocation"),
        ("logging.googleapis.com/spanId", "spanId"),
        ("logging.googleapis.com/trace", "trace"),
        ("logging.googleapis.com/trace_sampled", "traceSampled"),
        ("time", "timestamp"),
        ("timestamp", "timestamp"),
    ):
        if key in payload:
            fields[name] = payload.pop(key)
    fields["jsonPayload"] = payload
    return Payload(severity=known if known in _SEVERITIES else default, fields=fields)
