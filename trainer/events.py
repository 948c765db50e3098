"""Events as lines of JSON on standard output: the log agent makes each the jsonPayload of one entry.

The events and their fields are written down in docs/reference/replica.md, "What a trainer leaves behind".
Nothing here needs TensorFlow: a replica may have to say why it ends before that is loaded.
"""

import json
import math
import sys
from collections.abc import Mapping
from typing import Any


def report(event: str, message: str, *, severity: str = "INFO", **fields: object) -> None:
    """Write one event, at once and in one piece, so that lines of several threads stay whole."""
    line = json.dumps({"severity": severity, "message": message, "event": event} | finite(fields))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def finite(value: Any) -> Any:  # Any: JSON in, JSON out
    """`value` with numbers that JSON lacks (NaN, infinities) as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return value
