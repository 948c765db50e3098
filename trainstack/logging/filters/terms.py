"""The terms of a filter, and the error of an invalid one."""

from dataclasses import dataclass
from enum import Enum


class LogFilterError(ValueError):
    """The filter is invalid, or compares a field in a way it does not support."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0) -> None:
        """`line` and `column` count from 1; 0 if the fault has no single position."""
        where = f" at line {line}, column {column}" if line else ""
        super().__init__(f"Unparseable filter: {reason}{where}")


class FilterTooCostlyError(ValueError):
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
