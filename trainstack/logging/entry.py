"""A log entry as stored: validated, completed, in its JSON form.

Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from trainstack.instants import format_instant, parse_instant
from trainstack.logging.filters.fields import FIELDS
from trainstack.logging.filters.severity import RANKS, severity_name

MAX_ENTRY_BYTES = 256 * 1024
MAX_LOG_NAME = 512

_LOG_NAME = re.compile(r"(?P<parent>projects/[^/\s]+)/logs/[^/\s]+")
_PAYLOADS = ("textPayload", "jsonPayload", "protoPayload")
_SPELLINGS = {name.lower(): name for name in FIELDS}


class EntryError(ValueError):
    """An entry that the service would refuse; the message names every fault."""


@dataclass(frozen=True, kw_only=True)
class StoredEntry:
    """One entry; `fields` is the complete LogEntry in JSON. Do not change it."""

    parent: str
    timestamp_ns: int
    fields: Mapping[str, object]

    @property
    def insert_id(self) -> str:
        return str(self.fields["insertId"])

    @property
    def severity(self) -> int:
        return RANKS[str(self.fields["severity"])]

    @property
    def log_name(self) -> str:
        return str(self.fields["logName"])

    @property
    def job_id(self) -> str:
        """The job of a training job's entry; empty for any other entry."""
        resource = self.fields["resource"]
        labels = resource.get("labels") if isinstance(resource, dict) else None
        if not isinstance(labels, dict):
            return ""
        return next((str(value) for key, value in labels.items() if key.lower() == "job_id"), "")

    @cached_property
    def json(self) -> str:
        """The LogEntry as one line of JSON."""
        return json.dumps(self.fields, ensure_ascii=False, separators=(",", ":"))


def complete_entry(given: object, defaults: Mapping[str, object], *, received_ns: int) -> StoredEntry:
    """The entry as the service stores it: defaults, ids and times filled in, severity by name.

    `defaults` has the `logName`, `resource` and `labels` for entries without them.

    Raises:
        EntryError: every fault of the entry in one message.
    """
    if not isinstance(given, dict):
        raise EntryError(f"a log entry must be an object, found {type(given).__name__}")
    faults: list[str] = []
    fields = _fields_by_json_name(given, faults)
    fields.setdefault("logName", defaults.get("logName") or "")
    fields.setdefault("resource", defaults.get("resource") or {})
    if isinstance(shared := defaults.get("labels"), dict):
        fields["labels"] = {**shared, **_object(fields, "labels", faults)}
    _check_shapes(fields, faults)
    match = _LOG_NAME.fullmatch(str(fields["logName"]))
    if match is None or len(str(fields["logName"])) > MAX_LOG_NAME:
        faults.append(
            f"logName {fields['logName']!r} must be projects/PROJECT/logs/LOG_ID with the id URL-encoded, "
            f"at most {MAX_LOG_NAME} characters"
        )
    timestamp_ns = received_ns
    try:
        if "timestamp" in fields:
            timestamp_ns = parse_instant(str(fields["timestamp"]))
    except ValueError as fault:
        faults.append(f"timestamp: {fault}")
    try:
        fields["severity"] = severity_name(fields.get("severity", "DEFAULT"))
    except ValueError as fault:
        faults.append(f"severity: {fault}")
    if faults or match is None:
        raise EntryError("; ".join(faults))
    fields["insertId"] = str(fields.get("insertId") or secrets.token_hex(8))
    fields["timestamp"] = format_instant(timestamp_ns)
    fields["receiveTimestamp"] = format_instant(received_ns)
    entry = StoredEntry(parent=match["parent"], timestamp_ns=timestamp_ns, fields=fields)
    try:
        size = len(entry.json.encode())
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot encode
        clean = json.loads(entry.json.encode(errors="replace"))
        return complete_entry(clean, {}, received_ns=received_ns)
    if size > MAX_ENTRY_BYTES:
        raise EntryError(f"the entry has {size} bytes; at most {MAX_ENTRY_BYTES} are allowed")
    return entry


def _fields_by_json_name(given: Mapping[str, object], faults: list[str]) -> dict[str, object]:
    """The fields under their JSON names; null means absent, and snake case is accepted too."""
    fields: dict[str, object] = {}
    for name, value in given.items():
        known = _SPELLINGS.get(name.replace("_", "").lower())
        if known is None:
            faults.append(f"unknown field {name!r}; a log entry has {', '.join(FIELDS)}")
        elif value is not None:
            fields[known] = value
    return fields


def _object(fields: Mapping[str, object], name: str, faults: list[str]) -> dict[str, object]:
    value = fields.get(name, {})
    if isinstance(value, dict):
        return value
    faults.append(f"{name} must be an object, found {value!r}")
    return {}


def _check_shapes(fields: Mapping[str, object], faults: list[str]) -> None:
    payloads = [name for name in _PAYLOADS if name in fields]
    if len(payloads) > 1:
        faults.append(f"only one payload is allowed, found {' and '.join(payloads)}")
    for name in ("jsonPayload", "protoPayload", "resource"):
        _object(fields, name, faults)
    resource = _object(fields, "resource", [])
    for where, holder in (("resource.labels", resource), ("labels", fields)):
        for key, value in _object(holder, "labels", faults).items():
            if not isinstance(value, str):
                faults.append(f"{where}.{key} must be a string, found {value!r}")
    if not isinstance(fields.get("textPayload", ""), str):
        faults.append(f"textPayload must be a string, found {fields['textPayload']!r}")
