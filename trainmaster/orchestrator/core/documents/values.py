"""The result of reading a text: plain values, and the text's faults."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.documents.places import Place
from trainmaster.orchestrator.core.documents.work import MAX_KEY_CHARS

MAX_DEPTH = 32
MAX_DIGITS = 20
KEEP_ONE = "keep one of the two"
LONG_KEY = f"a key of more than {MAX_KEY_CHARS} characters"
DURATION_MAX_CHARS = 20
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"([0-9]+)\s*([smhd])[a-z]*")
_DURATION = re.compile(
    r"\s*([0-9]+\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)\s*)+",
)
SHORTEN = "shorten its lists; store data where the trainer can read it, and pass its location in args"


@dataclass(frozen=True, kw_only=True)
class Document:
    """The values that could be read, and all faults of the text.

    `spelled` is the text of every boolean by path, for only the author knows whether `no` means false; and of every number
    that is written otherwise than its value is: 3.10 is the number 3.1.
    `text` is what was read, `as_json` or as YAML; empty for values that come from no text.
    """

    value: object
    faults: tuple[Fault, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    text: str = field(default="", repr=False, compare=False)
    as_json: bool = field(default=False, repr=False, compare=False)


def unreadable(problem: str, *, repair: str = "", place: Place | None = None) -> Document:
    return Document(value=None, faults=(Fault(path="$", problem=problem, repair=repair, place=place),))


def long_key(parents: tuple[PathPart, ...], key: str) -> Fault:
    """The fault of a key too long to be one: paths with it would be long, and slow to compare."""
    return Fault(at=parents, problem=LONG_KEY, value=key, repair="shorten it")


def is_too_deep(value: object, depth: int = 0) -> bool:
    """Whether lists and mappings are nested deeper than MAX_DEPTH; does not recurse further."""
    if depth > MAX_DEPTH:
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(is_too_deep(part, depth + 1) for part in inside)


def parse_seconds(text: str) -> int | None:
    """The seconds in a length of time with units, such as `1h`, `90 min` or `1h30m`; None if the text has another form."""
    # The limit bounds the work and the digits.
    if len(text) > DURATION_MAX_CHARS or not _DURATION.fullmatch(text.lower()):
        return None
    seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text.lower()))
    return seconds or None


def whole(value: object) -> object:
    """An integral float such as 50.0 as an int; any other value, and a huge float, unchanged."""
    # The reader limits ints to MAX_DIGITS, so a float must not exceed that either: 1e300 has 300 digits.
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 10**MAX_DIGITS
    return int(value) if isinstance(value, float) and is_whole else value
