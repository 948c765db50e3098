"""What a text says: plain values, and everything that is wrong with the text."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.orchestrator.core.documents.faults import Fault

MAX_DEPTH = 32
MAX_DIGITS = 20
KEEP_ONE = "keep one of the two"


@dataclass(frozen=True, kw_only=True)
class Document:
    """The values that could be read, and everything that was wrong with the text.

    `spelled` is the text of every boolean by its path: only the writer knows whether `no` meant false.
    """

    value: object
    faults: tuple[Fault, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)


def unreadable(problem: str, *, repair: str = "") -> Document:
    return Document(value=None, faults=(Fault(path="$", problem=problem, repair=repair),))


def is_too_deep(value: object, depth: int = 0) -> bool:
    """Whether lists and mappings stand in each other deeper than MAX_DEPTH; looks no deeper itself."""
    if depth > MAX_DEPTH:
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(is_too_deep(part, depth + 1) for part in inside)


def whole(value: object) -> object:
    """A whole number that is written with a point, 50.0, as an int; anything else, huge ones too, as it is."""
    # The reader of documents bounds ints, and so nobody makes larger ones of floats: 1e300 has 300 digits.
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 10**MAX_DIGITS
    return int(value) if isinstance(value, float) and is_whole else value
