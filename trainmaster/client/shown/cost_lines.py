"""Costs as text: what runs cost, have cost so far, or may cost at most."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from trainmaster.client.runs.costs import CostGroup, PoolCost
from trainmaster.client.runs.facts import cost_so_far
from trainmaster.client.terminal import Fact, one_line
from trainmaster.orchestrator.core.policy.currency import shown_bound, shown_money
from trainmaster.orchestrator.core.runs.end import Cost
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.record import Estimate, RunRecord


def row_cost(row: IndexRow) -> str:
    """What the run cost, or before that the most that its job was estimated to cost: `≤ 6.73 USD`. Empty if unknown."""
    if row.currency is None:
        return ""
    if row.cost is not None:
        return shown_money(row.cost, row.currency, is_narrow=True)
    return "" if row.at_most is None else f"≤ {shown_bound(row.at_most, row.currency)}"


def total_cost(rows: Iterable[IndexRow], *, is_complete: bool) -> str:
    """What the runs cost together, and where some have not ended, may cost at most: `1.50 USD`, `≤ 6.73 USD`.

    Without `is_complete` there are more runs than these: `over 1.50 USD`. Empty without a known price; runs in another
    currency than the first one's are left out.
    """
    priced = [row for row in rows if row.currency and (row.cost is not None or row.at_most is not None)]
    if not priced or priced[0].currency is None:
        return ""
    currency = priced[0].currency
    same = [row for row in priced if row.currency == currency]
    total = sum((row.at_most or Decimal(0) if row.cost is None else row.cost for row in same), Decimal(0))
    if all(row.cost is not None for row in same):
        return f"{'' if is_complete else 'over '}{shown_money(total, currency, is_narrow=True)}"
    return f"{'≤' if is_complete else 'over'} {shown_bound(total, currency)}"


def group_columns(group: CostGroup, title: str) -> dict[str, str]:
    """A group of runs as a row of a table; `title` is that of the column of the groups."""
    currency = group.currency or ""
    may_cost = f"≤ {shown_bound(group.at_most, currency)}" if group.active and group.currency else "-"
    return {
        title: one_line(group.name),
        "RUNS": f"{group.runs:,}",
        "COST": shown_money(group.cost, currency, is_narrow=True) if group.currency else "-",
        "ACTIVE": f"{group.active:,}",
        "MAY STILL COST": may_cost,
        "UNKNOWN": f"{group.unpriced:,}",
    }


def pool_columns(pool: PoolCost, title: str) -> dict[str, str]:
    """A persistent resource as a row of the same table."""
    per_hour = "-" if pool.per_hour is None else f"{shown_money(pool.per_hour, pool.currency)} an hour"
    return {
        title: f"pool {pool.id}",
        "RUNS": "-",
        "COST": "-" if pool.cost is None else shown_money(pool.cost, pool.currency, is_narrow=True),
        "ACTIVE": "-",
        "MAY STILL COST": per_hour,
        "UNKNOWN": "-",
    }


def cost_facts(record: RunRecord, now: datetime) -> Iterator[Fact]:
    """What the job cost, or about what it has cost so far, and the estimate."""
    estimate = record.request.estimate if record.request else None
    if estimate is None:
        return
    cost = record.completion.cost if record.completion else None
    so_far = cost_so_far(record, now)
    amount = _actual(cost) if cost is not None else _so_far(so_far, estimate.currency)
    guess = f"estimate: {_estimate(estimate)}"
    yield "cost", [f"{amount} ({guess})" if amount else guess]


def _actual(cost: Cost) -> str:
    if cost.total is None:
        return f"unknown without {', '.join(cost.unknown)}"
    total = shown_money(cost.total, cost.currency)
    roles = [f"{role} {shown_money(amount, cost.currency)}" for role, amount in cost.roles.items()]
    others = {"earlier jobs": cost.earlier_jobs, "evaluation": cost.evaluation}
    parts = [
        *roles,
        *(f"{name} {shown_money(one, cost.currency)}" for name, one in others.items() if one is not None),
    ]
    return f"{total}: {', '.join(parts)}" if len(parts) > 1 else total


def _so_far(amount: Decimal | None, currency: str) -> str:
    if amount is None:
        return ""
    about = "" if 0 < amount < Decimal("0.01") else "about "
    return f"{about}{shown_money(amount, currency)} so far"


def _estimate(estimate: Estimate) -> str:
    parts = []
    if estimate.per_hour is not None:
        parts.append(f"{shown_money(estimate.per_hour, estimate.currency)} an hour")
    if estimate.at_most is not None:
        parts.append(f"at most {shown_bound(estimate.at_most, estimate.currency)}")
    if estimate.unknown:
        parts.append(f"unknown: {', '.join(estimate.unknown)}")
    return ", ".join(parts)
