"""What a filter says for certain about indexed columns, so that a list need not read every entry.

Only parts that every passing entry must satisfy count; the whole filter is evaluated afterwards all the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmaster.local.instants import parse_instant
from trainmaster.local.logging.filters.compare import fold
from trainmaster.local.logging.filters.fields import resolve
from trainmaster.local.logging.filters.tree import And, Comparison, Node, Operator
from trainmaster.local.logging.severity import RANKS, severity_name


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Conditions on columns; None where the filter says nothing."""

    from_ns: int | None = None
    until_ns: int | None = None
    min_severity: int | None = None
    job_id: str | None = None
    log_name: str | None = None

    def conditions(self) -> Iterator[tuple[str, int | str]]:
        """SQL conditions with one placeholder each, and the value for it."""
        columns = {
            "timestamp >= ?": self.from_ns,
            "timestamp <= ?": self.until_ns,
            "severity >= ?": self.min_severity,
            "job_id = ?": self.job_id,
            "log_name = ?": self.log_name,
        }
        for condition, value in columns.items():
            if value is not None:
                yield condition, value
                if value == self.job_id and condition.startswith("job_id"):
                    yield "job_id <> ?", ""  # lets the partial index answer


def bounds_of(node: Node) -> Bounds:
    """The bounds of a filter that compiles."""
    bounds = Bounds()
    for part in node.parts if isinstance(node, And) else (node,):
        if isinstance(part, Comparison):
            bounds = _narrowed(bounds, part)
        elif isinstance(part, And):
            inner = bounds_of(part)
            bounds = replace(
                bounds, **{key: value for key, value in vars(inner).items() if value is not None}
            )
    return bounds


def _narrowed(bounds: Bounds, part: Comparison) -> Bounds:
    path, _ = resolve(part.path)
    value = part.value.text
    match path, part.operator:
        case ("timestamp",), Operator.MORE | Operator.AT_LEAST:
            bound = parse_instant(value)
            return replace(bounds, from_ns=bound if bounds.from_ns is None else max(bound, bounds.from_ns))
        case ("timestamp",), Operator.LESS | Operator.AT_MOST:
            bound = parse_instant(value)
            return replace(bounds, until_ns=bound if bounds.until_ns is None else min(bound, bounds.until_ns))
        case ("severity",), Operator.MORE | Operator.AT_LEAST | Operator.EQUALS:
            return replace(bounds, min_severity=RANKS[severity_name(value)])
        case ("resource", "labels", "job_id"), Operator.EQUALS if value:
            return replace(bounds, job_id=fold(value))
        case ("logName",), Operator.EQUALS:
            return replace(bounds, log_name=fold(value))
        case _:
            return bounds
