"""The monitored resource of an entry.

Source: https://cloud.google.com/logging/docs/api/v2/resource-list
"""

import re
from pathlib import Path

_TYPES = frozenset(Path(__file__).with_name("resource_types.txt").read_text(encoding="utf-8").split())
"""Those without the name of a service."""
_OF_A_SERVICE = re.compile(r"[a-z0-9.-]+\.(googleapis|google)\.com/[A-Za-z0-9_]+")


def complete_resource(given: object, parent: str, faults: list[str]) -> dict[str, object]:
    """The resource with the label `project_id`, which the service fills in. Adds what the service would refuse to `faults`.

    Sources: python-logging's test_log_text_with_resource, and
    https://github.com/googleapis/google-cloud-python/pull/3386 for an entry without a resource.
    """
    if not isinstance(given, dict) or not given.get("type"):
        faults.append("A monitored resource must be specified for each log entry")
        return {}
    kind = str(given["type"])
    if kind not in _TYPES and not _OF_A_SERVICE.fullmatch(kind):
        faults.append(
            f"resource.type {kind!r} is none that the local stack knows; use global or generic_task"
        )
    labels = given.get("labels")
    own = labels if isinstance(labels, dict) else {}
    return {**given, "labels": {"project_id": parent.rpartition("/")[2], **own}}
