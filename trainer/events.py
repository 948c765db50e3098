"""Events as lines of JSON on standard output: the log agent makes each the jsonPayload of one entry.

The events and their fields are written down in docs/reference/replica.md, "What a trainer leaves behind".
Nothing here needs TensorFlow: a replica may have to say why it ends before that is loaded.
"""

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

_of_every_event: dict[str, str] = {}


def name_replica(replica: str) -> None:
    """Give every event of this process from now on the name of its replica, `worker-1`."""
    _of_every_event["replica"] = replica


def report_event(event: str, message: str, *, severity: str = "INFO", **fields: object) -> None:
    """Write one event, at once and in one piece, so that lines of several threads stay whole."""
    document = {"severity": severity, "message": message, "event": event, **_of_every_event}
    line = json.dumps(document | finite_numbers(fields))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def finite_numbers(value: Any) -> Any:  # Any: JSON in, JSON out
    """`value` with numbers that JSON lacks (NaN, infinities) as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite_numbers(item) for key, item in value.items()}
    return value
