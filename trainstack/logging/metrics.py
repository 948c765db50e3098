"""Log-based metrics: stored and shown. Nothing is counted, and there is no Cloud Monitoring to read a count from.

Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/projects.metrics
"""

import re
from collections.abc import Mapping

from trainstack.instants import format_instant, now_ns
from trainstack.logging.entry import SURFACE
from trainstack.logging.errors import RefusedError
from trainstack.logging.filters import LogFilterError, parse_filter

_NAME = re.compile(r"[A-Za-z0-9_\-.,+!*',()%][A-Za-z0-9_\-.,+!*',()%/]{0,99}")


def metric_resource(
    parent: str, given: Mapping[str, object], current: Mapping[str, object] | None = None
) -> dict[str, object]:
    """The service's response to the creation of a metric, or to its replacement if there is a `current` one.

    Raises:
        RefusedError: every fault, also what the stack has not.
    """
    faults = SURFACE.body_faults("LogMetric", given)
    name = str(given.get("name") or "")
    if not _NAME.fullmatch(name):
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
        raise RefusedError("; ".join(faults))
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
    }
