"""Structured log lines: one JSON object a line, as Cloud Logging lifts them from standard output.

No text from outside can begin a line or an entry of its own, name a key, or move the cursor of a terminal that
shows it. JSON keeps what is written in one line; of what a reader decodes from it, all that is not printable is
escaped once more, and a line end is kept only where the next line is indented, as our own lists are.
Source: https://cloud.google.com/logging/docs/structured-logging
"""

import json
import re
import sys

MAX_CHARS = 16_000
"""Of one text. An entry may have 256 KiB, and of a longer line the rest would be an entry of its own, no JSON.

Source: https://cloud.google.com/logging/quotas; a character takes at most 12 bytes of JSON.
"""
_TRACEBACK = "Traceback (most recent call last):\n"
"""How a traceback begins, and no message of ours that quotes anybody. Error Reporting wants its lines as they are."""
_NEW_LINE = re.compile(r"\n(?!  )")


def line(severity: str, message: str, **fields: object) -> None:
    """Write one entry; empty fields are left out, long texts lose their middle."""
    entry = {
        "severity": severity,
        "message": _lines(_cut(message)),
        **{key: _one_line(_cut(str(value))) for key, value in fields.items() if value},
    }
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


def _cut(text: str) -> str:
    half = MAX_CHARS // 2
    return text if len(text) <= MAX_CHARS else f"{text[:half]}… ({len(text)} characters) …{text[-half:]}"


def _lines(text: str) -> str:
    kept = text if text.startswith(_TRACEBACK) else _NEW_LINE.sub(r"\\n", text)
    return "\n".join(map(_one_line, kept.split("\n")))


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
