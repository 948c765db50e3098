"""The words of a filter, and what is wrong with a text that is none."""

from dataclasses import dataclass
from enum import Enum


class FilterError(ValueError):
    """Not a filter of this language, or one that asks of a field what it cannot answer."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0) -> None:
        """`line` and `column` count from 1; 0 when the fault has no single place."""
        where = f" at line {line}, column {column}" if line else ""
        super().__init__(f"Unparseable filter: {reason}{where}")


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
    """The right side of a comparison: `quoted` tells `"*"` from `*`, and a string from a number."""

    text: str
    quoted: bool
