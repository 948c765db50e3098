"""Bounds on indexed columns that follow from a filter, so that a list need not read every entry.

Every matching entry must satisfy them; the whole filter is still evaluated afterwards.
"""

from collections.abc import Iterator
from typing import TypeAlias

from trainstack.instants import parse_instant
from trainstack.logging.filters.compare import fold
from trainstack.logging.filters.fields import resolve
from trainstack.logging.filters.severity import RANKS, severity_name
from trainstack.logging.filters.terms import Operator, Value

Bound: TypeAlias = tuple[str, int | str]
"""An SQL condition with one placeholder, and its value."""


def bounds_of(path: tuple[str, ...], operator: Operator, wanted: Value) -> Iterator[Bound]:
    """The bounds of a valid comparison."""
    resolved, _ = resolve(path)
    value = wanted.text
    match resolved, operator:
        case ("timestamp",), Operator.MORE | Operator.AT_LEAST:
            yield "timestamp >= ?", parse_instant(value)
        case ("timestamp",), Operator.LESS | Operator.AT_MOST:
            yield "timestamp <= ?", parse_instant(value)
        case ("severity",), Operator.MORE | Operator.AT_LEAST | Operator.EQUALS:
            yield "severity >= ?", RANKS[severity_name(value)]
        case ("resource", "labels", "job_id"), Operator.EQUALS if value:
            yield "job_id = ?", fold(value)
            yield "job_id <> ?", ""  # lets the partial index answer
        case ("logName",), Operator.EQUALS:
            yield "log_name = ?", fold(value)
        case _:
            return
