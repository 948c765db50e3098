"""Text for a terminal: untrusted text without control characters, which it would execute, counts and sizes."""

import re
from collections.abc import Sequence
from pathlib import Path

Fact = tuple[str, Sequence[str]]
"""A label and the lines of text beside it."""
STATE = "state"
"""The label whose text begins with a state."""
_KIBI = 1024
_STYLING = re.compile(r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Escape sequences of ECMA-48: colours, cursor movements, titles and links."""


def one_line(text: str, most_chars: int | None = None) -> str:
    """`text` on one line: control and formatting characters become spaces, and an ellipsis marks a cut at the limit."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if most_chars is None or len(line) <= most_chars else f"{line[: most_chars - 1]}…"


def plural(count: int, thing: str) -> str:
    """For example `1 trial`, `2,000 trials`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def visible(text: str) -> str:
    r"""`text` without colours and cursor movements, and with every other character that cannot be seen as an escape.

    Line breaks and tabs stay, and of a line that is written again, as progress bars are, the last version: after a
    carriage return, or with backspaces. Characters that change the direction of writing become escapes too, such as
    \u202e.
    """
    plain = without_styling(text)
    if "\r" in plain or "\b" in plain:
        plain = "\n".join(map(_last_version, plain.split("\n")))
    if plain.isprintable():
        return plain
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode("ascii")
        for char in plain
    )


def without_styling(text: str) -> str:
    """`text` without colours and cursor movements."""
    return _STYLING.sub("", text) if "\x1b" in text else text


def _last_version(line: str) -> str:
    """What is left of a line on the screen, without the blanks that cover a longer version of it."""
    if "\r" not in line and "\b" not in line:
        return line
    last = line.rstrip("\r\b").rpartition("\r")[2]
    left: list[str] = []
    at = 0
    for char in last:
        if char == "\b":
            at = max(0, at - 1)
        else:
            left[at : at + 1] = char
            at += 1
    return "".join(left).rstrip(" ")


def relative_to_cwd(path: Path) -> str:
    """The path as seen from where the command was called."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def size_text(size_bytes: int) -> str:
    """A size for people: `12.5 MiB`."""
    if size_bytes == 1:
        return "1 byte"
    size, units = float(size_bytes), ["bytes", "KiB", "MiB", "GiB"]
    while size >= _KIBI and len(units) > 1:
        size, units = size / _KIBI, units[1:]
    return f"{size:,.1f}".removesuffix(".0") + f" {units[0]}"
