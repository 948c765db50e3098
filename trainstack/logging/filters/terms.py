"""The terms of a filter, what evaluating one may cost, and the errors of those that are refused.

A list of entries ends its page early, and no single entry takes longer than ENTRY_STEPS. A step takes about 5 ns. What a
term costs depends on how many bytes the entry has, and on what shapes they may have.
"""

from dataclasses import dataclass, field
from enum import Enum

from trainstack.errors import InvalidArgumentError

ENTRY_STEPS = 100_000_000
"""Of one entry, half a second. Honest filters take a few thousand."""
PAGE_STEPS = 20_000_000
"""Of all entries of a page, after which it ends."""
ONE_VALUE = 1
"""Steps for each byte of an entry: to compare a field that has one value."""
ANY_SHAPE = 10
"""Likewise, to look through lists and objects, which may hold thousands of short values."""
SHORT_VALUES = 100
"""Likewise, to search each of these with a regular expression, beside the expression's size."""

_ENTRY_BYTES = 200  # a term of any entry takes as long as to compare as many bytes
_READ = 4000  # steps to read an entry
_READ_BYTE = 3


class LogFilterError(InvalidArgumentError):
    """The filter is invalid, or compares a field in a way it does not support."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0) -> None:
        """`line` and `column` count from 1; 0 if the fault has no single position."""
        where = f" at line {line}, column {column}" if line else ""
        super().__init__(f"Unparseable filter: {reason}{where}")


class FilterTooCostlyError(InvalidArgumentError):
    """The filter is valid, and takes too long on an entry."""


class Operator(Enum):
    EQUALS = "="
    DIFFERS = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    HAS = ":"
    MATCHES = "=~"
    MATCHES_NOT = "!~"


@dataclass(frozen=True, kw_only=True)
class Value:
    """The right side of a comparison: `quoted` distinguishes `"*"` from `*`, and a string from a number."""

    text: str
    quoted: bool


@dataclass
class FilterWork:
    """What a filter has cost so far on one entry of that size; reading the entry is included."""

    entry_bytes: int = 0
    steps: int = field(init=False)

    def __post_init__(self) -> None:
        self.steps = _READ + _READ_BYTE * self.entry_bytes

    def spend(self, per_byte: int) -> None:
        """Count a term.

        Raises:
            FilterTooCostlyError: the filter takes too long on this entry.
        """
        self.steps += per_byte * (self.entry_bytes + _ENTRY_BYTES)
        if self.steps > ENTRY_STEPS:
            raise FilterTooCostlyError(
                f"The filter takes too long on an entry of {self.entry_bytes} bytes. Use fewer or simpler terms, or leave "
                "such entries out with a term before them, for example logName."
            )
