"""The values of a document: as they are read from its text, as unvalidated parts of it, and as work that they cost.

A reader refuses a document of more than MAX_VALUES values. A check that repeats, for fallbacks and for the conditions of
a rule, takes its work from one budget of MAX_WORK units, which a rule shares with its template: every machine decides
alike, whatever its speed.

In an unvalidated document, a value of another type than expected counts as absent: the schema's check reports it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.documents.places import TextPlace

Path = tuple[PathPart, ...]
MAX_VALUES = 10_000
"""Keys, values, lists and mappings of one document. Vertex AI allows 1,000 values of a discrete parameter, 100 variables
and 100 packages, so honest requests hold a few hundred, and large tunings a few thousand:
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec#DiscreteValueSpec"""
MAX_KEY_CHARS = 1000
MAX_WORK = 30_000
"""Checking this many units takes up to about 0.3 s of one processor."""
CHARS_PER_UNIT = 32
_PLACEHOLDER_BEGINS = "${"


@dataclass(kw_only=True)
class Work:
    """The budget of one document, or of a rule and its template together; `spent` counts units."""

    most: int = MAX_WORK
    spent: int = 0

    def take(self, units: int) -> bool:
        """Whether the budget has this many units left. They are taken in both cases, so that all later work is refused."""
        self.spent += units
        return not self.is_spent

    @property
    def is_spent(self) -> bool:
        return self.spent > self.most

    def refusal(self, found: str) -> Fault:
        """Why the document is refused once the budget is spent; `found` says on what."""
        return Fault(
            path="$",
            problem="checking this document takes too much work",
            found=found,
            allowed=f"at most {self.most} units, in a rule for all of its conditions together",
            repair="shorten lists and texts, or use fewer fallbacks, placeholders or conditions",
        )


def units(value: object) -> int:
    """The work of one check of the value: one unit for each value, key and placeholder, and for each 32 characters."""
    return sum(map(_unit, _iter_values(value)))


def has_too_many_values(value: object, most: int = MAX_VALUES) -> bool:
    return next(islice(_iter_values(value), most, None), _END) is not _END


_END = object()


def _unit(value: object) -> int:
    text = value if isinstance(value, str) else ""
    return 1 + len(text) // CHARS_PER_UNIT + text.count(_PLACEHOLDER_BEGINS)


def _iter_values(value: object) -> Iterator[object]:
    """The value and everything in it, keys included, in no particular order; it does not recurse."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part


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
    `text` is what was read from `content`, `as_json` or as YAML; both are empty for values that come from no text.
    """

    value: object
    faults: tuple[Fault, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    content: bytes = field(default=b"", repr=False, compare=False)
    text: str = field(default="", repr=False, compare=False)
    as_json: bool = field(default=False, repr=False, compare=False)


def unreadable(problem: str, *, repair: str = "", place: TextPlace | None = None) -> Document:
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


def iter_texts(value: object, path: Path = ()) -> Iterator[tuple[Path, str, bool]]:
    """Every text in the value, in its order, with its path; True for a key, which has the path of its value."""
    match value:
        case str():
            yield path, value, False
        case Mapping():
            for key, part in value.items():
                yield (*path, str(key)), str(key), True
                yield from iter_texts(part, (*path, str(key)))
        case list() | tuple():
            for index, part in enumerate(value):
                yield from iter_texts(part, (*path, index))


def with_strings(document: object, change: Callable[[str, Path], str], path: Path = ()) -> object:
    """The document with each string value changed, which may depend on its path; keys stay."""
    match document:
        case str():
            return change(document, path)
        case Mapping():
            return {key: with_strings(part, change, (*path, str(key))) for key, part in document.items()}
        case list() | tuple():
            return [with_strings(part, change, (*path, index)) for index, part in enumerate(document)]
        case _:
            return document


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


def at(document: object, *path: str) -> object:
    """The value at the path, or None."""
    for part in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(part)
    return document


def text_at(document: object, *path: str) -> str | None:
    value = at(document, *path)
    return value if isinstance(value, str) else None


def whole_at(document: object, *path: str) -> int | None:
    """The integer at the path; booleans do not count."""
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_true(document: object, *path: str) -> bool:
    return at(document, *path) is True


def mapping_at(document: object, *path: str) -> Mapping[str, object]:
    value = at(document, *path)
    return value if isinstance(value, Mapping) else {}


def list_at(document: object, *path: str) -> Sequence[object]:
    value = at(document, *path)
    return value if isinstance(value, list) else ()
