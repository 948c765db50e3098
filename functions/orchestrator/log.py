"""Structured log lines: one JSON object a line, as Cloud Logging lifts them from standard output.

JSON escapes control characters, so no text from outside can begin a line of its own.
Source: https://cloud.google.com/logging/docs/structured-logging
"""

import json
import sys


def line(severity: str, message: str, **fields: object) -> None:
    """Write one entry; empty fields are left out."""
    entry = {
        "severity": severity,
        "message": message,
        **{key: value for key, value in fields.items() if value},
    }
    sys.stdout.write(json.dumps(entry, default=str) + "\n")
    sys.stdout.flush()
