"""The arguments and metrics that differ between listed runs, and lists in the order of any of them. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.orchestrator.core.requests.checks.metrics import usual_goal
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.index import IndexRow

COLUMNS_MAX = 4
"""Of metrics, and as many of arguments: those that most of the runs have, and at least two."""
NAME_MAX_CHARS = 100
FIELDS: Mapping[str, Callable[[IndexRow], object]] = {
    "recorded": lambda row: row.created_at.timestamp(),
    "duration": lambda row: (row.ended_at - row.created_at).total_seconds() if row.ended_at else None,
    "cost": lambda row: row.cost,
    "state": lambda row: row.state,
    "model": lambda row: row.model_name,
    "by": lambda row: row.sent_by,
}
"""What a list can be sorted by beside metrics and arguments."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order of a list: by a field, else by the metric or the argument with this name."""

    name: str
    is_descending: bool = False

    def value_of(self, row: IndexRow) -> float | str | None:
        """What is compared; None where the run has none."""
        if self.name in FIELDS:
            value = FIELDS[self.name](row)
        else:
            value = row.metrics.get(self.name, row.args.get(self.name, row.args.get(f"--{self.name}")))
        return None if value is None else _number(value)

    def sort(self, rows: Iterable[IndexRow]) -> list[IndexRow]:
        """Numbers before texts, and runs without a value last; of equal ones, the newer one first."""
        valued = [(self.value_of(row), row) for row in rows]
        found = [(isinstance(value, str), value, row) for value, row in valued if value is not None]
        found.sort(key=lambda each: each[:2], reverse=self.is_descending)
        found.sort(key=lambda each: each[0])
        return [*(row for *_, row in found), *(row for value, row in valued if value is None)]


def parse_order(text: str) -> Order | None:
    """The order that `accuracy` or `-accuracy`, the largest first, means, or `--lr` and `---lr`; None for an empty text.

    Raises:
        ValueError: it is too long, or a minus alone.
    """
    name = text.strip()
    is_descending = name.startswith("-") and not (name.startswith("--") and name[2:3] not in ("", "-"))
    name = name[is_descending:]
    if len(name) > NAME_MAX_CHARS or (text.strip() and not name):
        raise ValueError(
            f"expected {', '.join(FIELDS)}, or the name of a metric or an argument, with - before it for the largest "
            f"first; found {text[:40]!r}"
        )
    return Order(name=name, is_descending=is_descending) if name else None


def _number(value: object) -> float | str:
    """The finite number that the value is or writes; else its text."""
    try:
        number = float(str(value))
    except ValueError:
        return str(value)
    return number if math.isfinite(number) else str(value)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A metric or an argument. `best` is the best value of a metric whose name says what is better, if runs differ in it."""

    name: str
    is_metric: bool
    best: float | None = None

    def text(self, row: IndexRow) -> str:
        """The run's value; empty without one."""
        value = row.metrics.get(self.name) if self.is_metric else row.args.get(self.name)
        return f"{value:.4g}" if isinstance(value, float) else value or ""

    def is_best(self, row: IndexRow) -> bool:
        """Whether the run has the best value."""
        return self.best is not None and row.metrics.get(self.name) == self.best


def differing_columns(rows: Sequence[IndexRow], order: Order | None = None) -> list[Column]:
    """The metrics and the arguments in which the runs differ, at most COLUMNS_MAX of each; what the list is sorted by too."""
    metrics = _differing([row.metrics for row in rows if row.metrics], order)
    args = _differing([row.args for row in rows if row.args], order)
    best = {name: _best_of(name, rows, order) for name in metrics}
    return [
        *(Column(name=name, is_metric=True, best=best[name]) for name in metrics),
        *(Column(name=name, is_metric=False) for name in args),
    ]


def _differing(values: Sequence[Mapping[str, object]], order: Order | None) -> list[str]:
    wanted = (order.name, f"--{order.name}") if order is not None else ()
    counts = Counter(name for each in values for name in each)
    distinct = {name: len({each.get(name) for each in values}) for name in counts}
    differ = [name for name in counts if name in wanted or (counts[name] > 1 and distinct[name] > 1)]
    return sorted(differ, key=lambda name: (name not in wanted, -counts[name]))[:COLUMNS_MAX]


def _best_of(name: str, rows: Sequence[IndexRow], order: Order | None) -> float | None:
    """By the goal that the name says, else by the order of the list if it is this metric's."""
    found = {row.metrics[name] for row in rows if name in row.metrics}
    goal = usual_goal(name)
    if goal is None and order is not None and order.name == name:
        goal = Goal.MAXIMIZE if order.is_descending else Goal.MINIMIZE
    if goal is None or len(found) < 2:  # noqa: PLR2004 - one value is not better than another
        return None
    return max(found) if goal is Goal.MAXIMIZE else min(found)
