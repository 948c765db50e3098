"""Faults with their places in the user's text, and as lines for people to read."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.documents.document import iter_places
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import TextPlace, split_lines, with_quoted_line
from trainmaster.orchestrator.core.documents.values import MAX_DEPTH, Document

_SEPARATOR = re.compile(r"[.\[]")
_NOT_SHOWN = "a value that is not shown"
PATH_MAX_CHARS = 1000
"""Of a path; a fault below a longer one is marked at the last key that is within it."""


def faults_with_places(
    faults: Iterable[Fault], read: Document, hidden: Collection[int] = ()
) -> tuple[Fault, ...]:
    """The faults, each with its place in the text that was read, and the text of its line.

    A value that must be there is missing at the key above it. A fault of the whole document has no place, nor has one
    of values without a text. Lines that are `hidden`, and those of secrets, are not quoted, nor are values on them or
    lists and mappings that may hold them. The work is linear in the text's length.
    """
    faults = tuple(faults)
    if not read.text:
        return faults
    asked = {fault.path for fault in faults if fault.place is None and fault.path != "$"}
    ways = {path: tuple(_upwards(path)) for path in asked}
    found = _find({path for way in ways.values() for path in way}, read)
    places = [fault.place or _place_of(fault, ways.get(fault.path, ()), found) for fault in faults]
    pairs = tuple(zip(faults, places, strict=True))
    secret = {line for fault, place in pairs if fault.is_secret and place for line in _lines_of(place)}
    lines = split_lines(read.text, as_json=read.as_json)
    unquoted = {*hidden, *secret}
    quoted = (place and with_quoted_line(place, lines, unquoted) for place in places)
    shown = (_without_value(fault, place, unquoted) for fault, place in pairs)
    return tuple(replace(fault, place=place) for fault, place in zip(shown, quoted, strict=True))


def position(fault: Fault) -> tuple[int, int]:
    """Sorts faults in the order of the text, those without a place first."""
    return (0, 0) if fault.place is None else (fault.place.line, fault.place.column)


def _without_value(fault: Fault, place: TextPlace | None, hidden: Collection[int]) -> Fault:
    """The fault without the value found and a repair that repeats it, where the value may hold what is hidden."""
    is_within = place is not None and place.line in hidden
    if fault.is_secret or not fault.found or not (is_within or (hidden and fault.found[0] in "[{")):
        return fault
    value = fault.found.strip("'\"")
    return replace(fault, found=_NOT_SHOWN, repair="" if value and value in fault.repair else fault.repair)


def _upwards(path: str) -> Iterator[str]:
    """The path and what may be the paths above it, from the longest to the root.

    A key in quotes may hold separators: of too many, those in the middle are skipped.
    """
    path = path[:PATH_MAX_CHARS]
    ends = [separator.start() for separator in _SEPARATOR.finditer(path)]
    yield path
    for end in reversed(ends[:MAX_DEPTH] + ends[MAX_DEPTH:][-MAX_DEPTH:]):
        yield path[:end]


def _find(paths: Collection[str], read: Document) -> dict[str, tuple[TextPlace, TextPlace | None]]:
    """The places of the key and of the value at each of the paths that the text has; of a duplicate key the last."""
    if not paths:
        return {}
    places = iter_places(read.text, as_json=read.as_json, enters=paths.__contains__)
    return {path: (key, value) for path, key, value in places if path in paths}


def _place_of(
    fault: Fault, way: Sequence[str], found: Mapping[str, tuple[TextPlace, TextPlace | None]]
) -> TextPlace | None:
    """The place of the value, or of the key if the key is wrong, has no scalar value, or is the last one present."""
    there = next((path for path in way if path in found), None)
    if there is None:
        return None
    key, value = found[there]
    if there == "$":
        return replace(key, length=1, end_line=key.line)
    return value if value is not None and there == fault.path and not fault.is_key else key


def _lines_of(place: TextPlace) -> range:
    return range(place.line, max(place.line, place.end_line) + 1)


def lines_of_fault(fault: Fault, file: str, level: str = "") -> tuple[str, ...]:
    """The fault as lines of plain text: where it is in `file`, the line there with a mark below it, and the rest.

    What is not in the file has its `source` in place of it: an option, or a script.

    The first line is `FILE:LINE:COLUMN: LEVEL: PATH: PROBLEM`, as editors and continuous integration read it, or
    without the level if it is empty.
    """
    place = fault.place
    where = fault.source or file
    where = where if place is None else f"{where}:{place.line}:{place.column}"
    allowed = f"allowed: {fault.allowed}" if fault.allowed else ""
    after = (fault.repair, allowed) if fault.is_hint else (allowed, fault.repair)
    said = [f"found {fault.found}" if fault.found else "", *after]
    return (
        f"{where}: {level and level + ': '}{fault.path}: {fault.problem}",
        *_excerpt(place),
        *(f"  {text}" for text in said if text),
    )


def _excerpt(place: TextPlace | None) -> Iterator[str]:
    if place is None:
        return
    number, excerpt = str(place.line), place.excerpt
    if excerpt is None:
        yield f"  {number} | (this line is not shown: it may hold a secret)"
        return
    yield f"  {number} | {excerpt[0]}".rstrip()
    yield f"  {' ' * len(number)} | {excerpt[1]}"
