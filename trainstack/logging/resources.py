"""Sinks, which entries they export and where to; and log-based metrics, of which nothing is counted: there is no Monitoring.

Sources: https://cloud.google.com/logging/docs/reference/v2/rest/v2/projects.sinks and …/projects.metrics
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainstack.errors import InvalidArgumentError
from trainstack.instants import format_instant, now_ns
from trainstack.logging.entry import SURFACE, StoredEntry
from trainstack.logging.filters import (
    FilterTooCostlyError,
    FilterWork,
    LogFilter,
    LogFilterError,
    parse_filter,
)
from trainstack.project import project_number
from trainstack.publisher import Message

DEFAULT_UPDATE_MASK = ("destination", "filter", "includeChildren")
"""The fields that an update without a mask changes, according to the reference."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_METRIC_NAME = re.compile(r"[A-Za-z0-9_\-.,+!*',()%][A-Za-z0-9_\-.,+!*',()%/]{0,99}")
_TOPIC = re.compile(r"pubsub\.googleapis\.com/(projects/[^/\s]+/topics/[^/\s]+)")
_UPDATABLE = ("description", "destination", "disabled", "filter", "includeChildren")


@dataclass(frozen=True, kw_only=True)
class ExportSink:
    """A sink with its compiled filter; `resource` is its form in the API, `full_name` includes the parent."""

    full_name: str
    topic: str
    filter: LogFilter
    resource: Mapping[str, object]

    @property
    def parent(self) -> str:
        return self.full_name.partition("/sinks/")[0]

    def exports(self, entry: StoredEntry) -> bool:
        """Whether it publishes the entry. One that its filter takes too long on is not published, and is stored."""
        if self.resource.get("disabled"):
            return False
        try:
            return self.filter.passes(entry.fields, FilterWork(entry_bytes=len(entry.json)))
        except FilterTooCostlyError:
            return False


def load_sink(full_name: str, resource: Mapping[str, object]) -> ExportSink:
    """The sink of a resource.

    Raises:
        InvalidArgumentError: every fault, also a destination that is not supported here.
    """
    faults = SURFACE.body_faults("LogSink", resource)
    name = str(resource.get("name", ""))
    if not _NAME.fullmatch(name):
        allowed = "1 to 100 letters, digits, '_', '-' and '.', beginning with a letter or digit"
        faults.append(f"name {name!r} must have {allowed}")
    destination = str(resource.get("destination", ""))
    match = _TOPIC.fullmatch(destination)
    if match is None:
        faults.append(
            f"destination {destination!r} is not imitated by the local stack, which exports to pubsub.googleapis.com/projects/"
            "PROJECT/topics/TOPIC alone"
        )
    try:
        wanted = parse_filter(str(resource.get("filter") or ""))
    except LogFilterError as fault:
        raise InvalidArgumentError("; ".join([*faults, str(fault)])) from fault
    if faults or match is None:
        raise InvalidArgumentError("; ".join(faults))
    return ExportSink(full_name=full_name, topic=match[1], filter=wanted, resource=resource)


def sink_resource(
    parent: str,
    given: Mapping[str, object],
    current: Mapping[str, object] | None = None,
    *,
    mask: Sequence[str] = (),
    unique_writer: bool = False,
) -> dict[str, object]:
    """The service's response to a sink's creation, or to an update of the masked fields if there is a `current` one.

    An update keeps the writer identity, unless a unique one is requested.

    Raises:
        InvalidArgumentError: a masked field cannot be set.
    """
    now = format_instant(now_ns())
    writer = {"writerIdentity": writer_identity(parent, unique=unique_writer)}
    if current is None:
        return {**given, **writer, "createTime": now, "updateTime": now}
    fields = tuple(mask) or DEFAULT_UPDATE_MASK
    if wrong := [field for field in fields if field not in _UPDATABLE]:
        raise InvalidArgumentError(
            f"updateMask: {', '.join(wrong)} cannot be updated; allowed are {', '.join(_UPDATABLE)}"
        )
    if faults := SURFACE.body_faults("LogSink", given):
        raise InvalidArgumentError("; ".join(faults))
    kept = {field: value for field, value in current.items() if field not in fields}
    changed = {field: given[field] for field in fields if field in given}
    return {**kept, **changed, **(writer if unique_writer else {}), "updateTime": now}


def message_of(entry: StoredEntry) -> Message:
    """The message that a sink publishes for an entry.

    Source: https://cloud.google.com/logging/docs/export/pubsub
    """
    return entry.json.encode(), {"logging.googleapis.com/timestamp": format_instant(entry.timestamp_ns)}


def writer_identity(parent: str, *, unique: bool) -> str:
    """The account that would publish; the local Pub/Sub requires no permission."""
    if not unique:
        return "serviceAccount:cloud-logs@system.gserviceaccount.com"
    number = project_number(parent.rpartition("/")[2])
    return f"serviceAccount:service-{number}@gcp-sa-logging.iam.gserviceaccount.com"


def metric_resource(
    parent: str, given: Mapping[str, object], current: Mapping[str, object] | None = None
) -> dict[str, object]:
    """The service's response to the creation of a metric, or to its replacement if there is a `current` one.

    Raises:
        InvalidArgumentError: every fault, also what the stack has not.
    """
    faults = SURFACE.body_faults("LogMetric", given)
    name = str(given.get("name") or "")
    if not _METRIC_NAME.fullmatch(name):
        faults.append(
            f"name {name!r} must have 1 to 100 letters, digits and _-.,+!*',()%/, and not begin with '/'"
        )
    try:
        if not given.get("filter"):
            faults.append("filter is required")
        parse_filter(str(given.get("filter") or ""))
    except LogFilterError as fault:
        faults.append(str(fault))
    descriptor = given.get("metricDescriptor", {})
    if not isinstance(descriptor, dict):
        faults.append(f"metricDescriptor must be an object, found {descriptor!r:.200}")
    if faults or not isinstance(descriptor, dict):
        raise InvalidArgumentError("; ".join(faults))
    now = format_instant(now_ns())
    type_name = f"logging.googleapis.com/user/{name}"
    return {
        **given,
        "metricDescriptor": {
            "metricKind": "DELTA",
            "valueType": "INT64",
            "unit": "1",
            **descriptor,
            "name": f"{parent}/metricDescriptors/{type_name}",
            "type": type_name,
            **({"description": given["description"]} if given.get("description") else {}),
        },
        "version": "V2",
        "createTime": (current or {}).get("createTime", now),
        "updateTime": now,
        "resourceName": f"{parent}/metrics/{name}",
    }
