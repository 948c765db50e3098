"""What a filter says for certain about indexed columns, so that a list need not read every entry.

Only what every passing entry must satisfy counts; the whole filter is evaluated afterwards all the same.
"""

from collections.abc import Iterator
from typing import TypeAlias

from trainmaster.local.instants import parse_instant
from trainmaster.local.logging.filters.compare import fold
from trainmaster.local.logging.filters.fields import resolve
from trainmaster.local.logging.filters.severity import RANKS, severity_name
from trainmaster.local.logging.filters.terms import Operator, Value

Bound: TypeAlias = tuple[str, int | str]
"""A condition of SQL with one placeholder, and the value for it."""


def bounds_of(path: tuple[str, ...], operator: Operator, wanted: Value) -> Iterator[Bound]:
    """Of a comparison that compiles."""
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
