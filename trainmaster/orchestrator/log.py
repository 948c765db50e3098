"""Structured log lines: one JSON object a line on standard output, as Cloud Logging parses them.

Text from outside cannot start a new line or entry, set a key, or move the cursor of a terminal that shows it. JSON
keeps each entry on one line. Characters that are not printable after decoding are escaped once more, and a line
break is kept only before an indented line, as in our own lists.
Source: https://cloud.google.com/logging/docs/structured-logging
"""

import json
import re
import sys

MAX_CHARS = 16_000
"""The longest text of a field. An entry may have 256 KiB; the rest of a longer line would become a second entry,
not JSON.

Source: https://cloud.google.com/logging/quotas; a character takes at most 12 bytes of JSON.
"""
_TRACEBACK = "Traceback (most recent call last):\n"
"""How a traceback begins; no message that quotes outside text does. Error Reporting needs its lines unchanged."""
_NEW_LINE = re.compile(r"\n(?!  )")


def line(severity: str, message: str, **fields: object) -> None:
    """Write one entry. Empty fields are left out; long texts are cut in the middle."""
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
