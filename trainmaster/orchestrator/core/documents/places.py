"""Places in a user's text, and the part of a line that a report quotes."""

import re
import unicodedata
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

TEXT_MAX_CHARS = 160
"""Of a longer line, as in JSON without line ends, a report quotes the part around the place."""
_BEFORE_CHARS = 40
_JSON_LINE_END = re.compile("\r?\n")
_YAML_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, kw_only=True)
class TextPlace:
    """A key or a value in a text; lines and columns are counted from 1, columns in characters.

    `length` counts the characters of it on `line`; a value of several lines ends on `end_line`.
    `text` is the line, or of a long one TEXT_MAX_CHARS from `text_column` on; None where it must not be quoted.
    """

    line: int
    column: int
    length: int = 1
    end_line: int = 0
    text: str | None = None
    text_column: int = 1

    @property
    def document(self) -> dict[str, object]:
        """The place as fields of a fault's report."""
        there: dict[str, object] = {"line": self.line, "column": self.column, "length": self.length}
        return there if self.text is None else {**there, "text": self.text, "text_column": self.text_column}

    @property
    def excerpt(self) -> tuple[str, str] | None:
        """The line, and a line that marks the place below it; None where the line must not be quoted."""
        if self.text is None:
            return None
        start = self.column - self.text_column
        marked = self.text[start : start + self.length]
        lead = "…" if self.text_column > 1 else ""
        shift = " " * _width(lead + self.text[:start])
        return lead + self.text, shift + "^" * max(1, _width(marked))


Found = tuple[str, TextPlace, TextPlace | None]
"""A path, the place of its key, for an item the item's own, and the place of its value; None if that is not a scalar."""


def line_starts(text: str, *, as_json: bool) -> Sequence[int]:
    """Where each line begins, as JSON's or YAML's parser counts lines."""
    return [0, *(end.end() for end in (_JSON_LINE_END if as_json else _YAML_LINE_END).finditer(text))]


def split_lines(text: str, *, as_json: bool) -> Sequence[str]:
    """The lines as JSON's or YAML's parser counts them, without their ends."""
    return (_JSON_LINE_END if as_json else _YAML_LINE_END).split(text)


def with_quoted_line(place: TextPlace, lines: Sequence[str], hidden: Container[int]) -> TextPlace:
    """The place with the text of its line, unless that line is `hidden`."""
    if place.line in hidden:
        return place
    line = lines[place.line - 1] if place.line <= len(lines) else ""  # a text may break at its end
    start = max(0, place.column - 1 - _BEFORE_CHARS) if len(line) > TEXT_MAX_CHARS else 0
    shown = line[start : start + TEXT_MAX_CHARS]
    # One character for one, so that columns stay as they are.
    text = "".join(char if char.isprintable() else " " if char == "\t" else "\ufffd" for char in shown)
    most = max(1, start + len(text) - (place.column - 1))
    return replace(place, length=min(max(1, place.length), most), text=text, text_column=start + 1)


def _width(text: str) -> int:
    """The columns that a terminal uses for the text."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)
