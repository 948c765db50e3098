"""What a filter says for certain about indexed columns, so that a list need not read every entry.

Only parts that every passing entry must satisfy count; the whole filter is evaluated afterwards all the same.
"""

from collections.abc import Iterator

from trainmaster.local.instants import parse_instant
from trainmaster.local.logging.filters.compare import fold
from trainmaster.local.logging.filters.fields import resolve
from trainmaster.local.logging.filters.severity import RANKS, severity_name
from trainmaster.local.logging.filters.tree import And, Comparison, Node, Operator


def bounds_of(node: Node) -> Iterator[tuple[str, int | str]]:
    """SQL conditions with one placeholder each, and the value for it, of a filter that compiles."""
    if isinstance(node, And):
        for part in node.parts:
            yield from bounds_of(part)
    elif isinstance(node, Comparison):
        yield from _bound(node)


def _bound(part: Comparison) -> Iterator[tuple[str, int | str]]:
    path, _ = resolve(part.path)
    value = part.value.text
    match path, part.operator:
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
