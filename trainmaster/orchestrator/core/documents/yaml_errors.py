"""The faults of a text that is not YAML as requests are: what is wrong, where the mistake is, and the repair.

libyaml names the place where it could not read on, which may be many lines below the mistake.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import yaml

from trainmaster.orchestrator.core.documents.places import TextPlace, split_lines
from trainmaster.orchestrator.core.documents.values import Document, unreadable

QUOTES = ("'", '"')
_SECOND = "but found another document"
_UNCLOSED = "while scanning a quoted scalar"
_NO_KEY = frozenset(
    {
        "mapping values are not allowed in this context",
        "could not find expected ':'",
        "did not find expected <document start>",
    }
)
"""libyaml's words where a line was read as text and not as a key with its value."""
_TABBED = re.compile(" *\t")
_EMPTY = re.compile(r"\s*(#.*)?")
_NO_SPACE = re.compile(r"(?P<before>[ ]*(-[ ]+)*)(?P<key>[A-Za-z_][A-Za-z0-9_.-]{0,99}):(?!//)(?=[^\s:])")


class RefusedYaml(yaml.MarkedYAMLError):
    """Legal YAML that requests do not need and that attacks use."""

    # Any: the position, as a class of PyYAML or of libyaml.
    def __init__(self, problem: str, mark: Any, repair: str) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.repair = repair


def broken_yaml(error: yaml.YAMLError, text: str, quoted_lines: TextPlace | None) -> Document:
    """The document of a text that cannot be read.

    `quoted_lines` is the last value in quotes before the error, if it is of several lines.
    """
    if getattr(error, "problem", None) == _SECOND:
        repair = "write one document per file"
        return unreadable("more than one YAML document", repair=repair, place=_place(error, text))
    lines = split_lines(text, as_json=False)
    known = _unclosed_quote(error, quoted_lines) or _without_space(error, lines)
    problem, repair = f"broken YAML: {_words(error)}", _repair(error, lines)
    return known or unreadable(problem, repair=repair, place=_place(error, text))


def _unclosed_quote(error: yaml.YAMLError, quoted_lines: TextPlace | None) -> Document | None:
    """The fault of a value without its closing quote: it lasts to the text's end, or to the next value in quotes."""
    begin, end = getattr(error, "context_mark", None), getattr(error, "problem_mark", None)
    if getattr(error, "context", None) == _UNCLOSED and begin is not None:
        return unreadable(
            f"broken YAML: no closing quote, line {begin.line + 1}, column {begin.column + 1}",
            repair="close the quote that begins here",
            place=TextPlace(line=begin.line + 1, column=begin.column + 1),
        )
    if quoted_lines is None or end is None or end.line + 1 != quoted_lines.end_line:
        return None
    begins = f"line {quoted_lines.line}, column {quoted_lines.column}"
    return unreadable(
        f"broken YAML: the text in quotes from {begins} ends only on line {quoted_lines.end_line}",
        repair="close the quote that begins here",
        place=TextPlace(line=quoted_lines.line, column=quoted_lines.column),
    )


def _without_space(error: yaml.YAMLError, lines: Sequence[str]) -> Document | None:
    """The fault of `key:value`, which is one word in YAML; the error is on a later line."""
    if getattr(error, "problem", None) not in _NO_KEY:
        return None
    for number in _suspects(error, lines):
        if found := _NO_SPACE.match(lines[number]):
            key, column = found["key"], len(found["before"]) + 1
            return unreadable(
                f"broken YAML: no space after the colon of {key!r}, line {number + 1}, column {column}",
                repair=f"write a space after '{key}:'",
                place=TextPlace(line=number + 1, column=column, length=len(key) + 1),
            )
    return None


def _suspects(error: yaml.YAMLError, lines: Sequence[str]) -> Iterator[int]:
    """Where the mistake may be: the line where the value began, that of the error, and the last before it with a value."""
    at = [getattr(error, name, None) for name in ("context_mark", "problem_mark")]
    yield from (mark.line for mark in at if mark is not None and mark.line < len(lines))
    before = range((at[1].line if at[1] is not None else 0) - 1, -1, -1)
    yield from islice((number for number in before if not _EMPTY.fullmatch(lines[number])), 1)


def _place(error: yaml.YAMLError, text: str) -> TextPlace | None:
    """Where the text could not be read on."""
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: max(0, text.find(chr(int(error.character))))]
        lines = split_lines(before, as_json=False)
        return TextPlace(line=len(lines), column=len(lines[-1]) + 1)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return None if mark is None else TextPlace(line=mark.line + 1, column=mark.column + 1)


def _words(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark or error.context_mark
        return error.problem + (f", line {mark.line + 1}, column {mark.column + 1}" if mark else "")
    if isinstance(error, yaml.reader.ReaderError):
        # The stubs declare a str, but PyYAML's reader gives the code point.
        return f"a character that YAML does not allow, U+{int(error.character):04X}"
    return str(error)


def _repair(error: yaml.YAMLError, lines: Sequence[str]) -> str:
    if isinstance(error, RefusedYaml):
        return error.repair
    mark = getattr(error, "problem_mark", None)
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    if _TABBED.match(line):
        return "indent with spaces, not tabs"
    if "${" in line:
        return "between brackets, put a value with ${…} in quotes"
    return "check the indentation, quotes and brackets near this position"
