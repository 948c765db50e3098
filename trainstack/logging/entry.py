"""A log entry as stored: validated, completed, in its JSON form.

Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainstack.instants import format_instant, parse_instant
from trainstack.logging.filters.fields import FIELDS, RANKS, FieldKind, Kind, fold, severity_name
from trainstack.surface import load_surface

MAX_ENTRY_BYTES = 256 * 1024
MAX_LOG_NAME = 512
MAX_AHEAD_NS = 24 * 3600 * 1_000_000_000
"""An entry further in the future is refused: https://cloud.google.com/logging/quotas"""
SURFACE = load_surface(Path(__file__).with_name("surface.toml"))

_WRITTEN_BY_THE_SERVICE = [
    name for name, kind in SURFACE.bodies["LogEntry"].kinds.items() if kind == "without_effect"
]
_LOG_NAME = re.compile(r"(?P<parent>projects/[^/\s]+)/logs/[^/\s]+")
_RESOURCE_TYPES = frozenset(
    Path(__file__).with_name("resource_types.txt").read_text(encoding="utf-8").split()
)
"""Those without the name of a service: https://cloud.google.com/logging/docs/api/v2/resource-list"""
_OF_A_SERVICE = re.compile(r"[a-z0-9.-]+\.(googleapis|google)\.com/[A-Za-z0-9_]+")
_PAYLOADS = ("textPayload", "jsonPayload", "protoPayload")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_SECONDS = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,9})?s")


class EntryError(ValueError):
    """An entry that the service would refuse; the message names every fault."""


@dataclass(frozen=True, kw_only=True)
class StoredEntry:
    """One entry; `fields` is the complete LogEntry in JSON. Do not change it."""

    parent: str
    timestamp_ns: int
    fields: Mapping[str, object]

    @property
    def columns(self) -> tuple[str, int, str, str]:
        """Its insertId, its severity's rank, its log's name, and its job if it is a training job's, else an empty text."""
        rank, labels = (
            RANKS[str(self.fields["severity"])],
            _object(_object(self.fields, "resource"), "labels"),
        )
        job_id = next((str(value) for key, value in labels.items() if key.lower() == "job_id"), "")
        return str(self.fields["insertId"]), rank, fold(str(self.fields["logName"])), fold(job_id)

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
    shared_by_all = {name: defaults[name] for name in ("logName", "resource") if defaults.get(name)}
    fields = _checked_fields(FIELDS, {**shared_by_all, **given}, "", faults)
    faults += SURFACE.body_faults("LogEntry", fields)
    for name in _WRITTEN_BY_THE_SERVICE:
        fields.pop(name, None)
    if isinstance(shared := defaults.get("labels"), dict):
        fields["labels"] = {**shared, **_object(fields, "labels")}
    _check_payload_and_labels(fields, faults)
    log_name = str(fields.get("logName", ""))
    match = _LOG_NAME.fullmatch(log_name)
    if match is None or len(log_name) > MAX_LOG_NAME:
        faults.append(
            f"logName {log_name!r} must be projects/PROJECT/logs/LOG_ID with the id URL-encoded, "
            f"at most {MAX_LOG_NAME} characters"
        )
    else:
        fields["resource"] = _complete_resource(fields.get("resource"), match["parent"], faults)
    timestamp_ns = received_ns
    try:
        if "timestamp" in fields:
            timestamp_ns = parse_instant(str(fields["timestamp"]))
    except ValueError as fault:
        faults.append(f"timestamp: {fault}")
    if timestamp_ns > received_ns + MAX_AHEAD_NS:
        faults.append(f"timestamp {fields['timestamp']} is more than 24 hours in the future")
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


def _checked_fields(
    kinds: Mapping[str, Kind], given: Mapping[str, object], place: str, faults: list[str]
) -> dict[str, object]:
    """The fields under their JSON names; null means absent, and snake case is accepted too. Unknown ones stay."""
    fields: dict[str, object] = {}
    for name, value in given.items():
        folded = name.replace("_", "").lower()
        known = name if name in kinds else next((kind for kind in kinds if kind.lower() == folded), name)
        if value is not None:
            fields[known] = checked(kinds[known], value, place + known, faults) if known in kinds else value
    return fields


def checked(kind: Kind, value: object, place: str, faults: list[str]) -> object:
    """A field's value as protobuf's JSON has it. Adds a fault for each value of another type.

    Source: https://protobuf.dev/programming-guides/json/
    """
    match kind, value:
        case Mapping(), dict():
            return _checked_fields(kind, value, f"{place}.", faults)
        case FieldKind.SEVERITY, _:
            return value
        case (
            (FieldKind.FREE, dict()) | (FieldKind.TEXT | FieldKind.INSTANT, str()) | (FieldKind.FLAG, bool())
        ):
            return value
        case FieldKind.DURATION, str() if _SECONDS.fullmatch(value):
            return value
        case ((FieldKind.NUMBER | FieldKind.LONG), (int() | str())) if _INTEGER.fullmatch(str(value)):
            return int(value) if kind is FieldKind.NUMBER else str(int(value))
        case _:
            wanted = kind.value if isinstance(kind, FieldKind) else FieldKind.FREE.value
            faults.append(f"{place} must be {wanted}, found {value!r:.200}")
            return value


def _object(fields: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _complete_resource(given: object, parent: str, faults: list[str]) -> dict[str, object]:
    """The resource with the label `project_id`, which the service fills in. Adds what the service would refuse to `faults`.

    Sources: python-logging's test_log_text_with_resource, and
    https://github.com/googleapis/google-cloud-python/pull/3386 for an entry without a resource.
    """
    if not isinstance(given, dict) or not given.get("type"):
        faults.append("A monitored resource must be specified for each log entry")
        return {}
    kind = str(given["type"])
    if kind not in _RESOURCE_TYPES and not _OF_A_SERVICE.fullmatch(kind):
        faults.append(
            f"resource.type {kind!r} is none that the local stack knows; use global or generic_task"
        )
    return {**given, "labels": {"project_id": parent.rpartition("/")[2], **_object(given, "labels")}}


def _check_payload_and_labels(fields: Mapping[str, object], faults: list[str]) -> None:
    payloads = [name for name in _PAYLOADS if name in fields]
    if len(payloads) > 1:
        faults.append(f"only one payload is allowed, found {' and '.join(payloads)}")
    for where, holder in (("resource.labels", _object(fields, "resource")), ("labels", fields)):
        for key, value in _object(holder, "labels").items():
            if not isinstance(value, str):
                faults.append(f"{where}.{key} must be a string, found {value!r}")
