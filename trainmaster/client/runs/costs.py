"""What runs have cost by model, team, user or label, from the index of runs: no record is read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trainmaster.client.clients import Clients
from trainmaster.client.records import Encoded
from trainmaster.client.runs.listing import SCANNED_MAX, Filters, list_runs
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.states import ENDS

BY = ("model", "team", "user", "label")


@dataclass(kw_only=True)
class CostGroup:
    """The runs of one group whose prices are in one currency; None for those without a price.

    `active` have not ended, and may cost `at_most`; the others have cost `cost`. Of `unpriced` runs that is not known.
    """

    name: str
    currency: str | None = None
    runs: int = 0
    active: int = 0
    unpriced: int = 0
    cost: Decimal = Decimal(0)
    at_most: Decimal = Decimal(0)

    def add(self, row: IndexRow) -> None:
        """Count one more run."""
        is_active = row.state not in ENDS
        amount = row.at_most if is_active else row.cost
        self.runs += 1
        self.active += is_active
        self.unpriced += amount is None
        self.at_most += (amount or 0) if is_active else 0
        self.cost += 0 if is_active else (amount or 0)


@dataclass(frozen=True, kw_only=True)
class PoolCost:
    """What a persistent resource that exists has cost in the time asked for, and costs an hour; None: unknown."""

    id: str
    region: str
    currency: str
    per_hour: Decimal | None
    cost: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Costs(Encoded):
    """Costs by group, the dearest first: schemas/costs.v1.schema.json. By label, a run may be in several groups."""

    schema: str = "costs.v1"
    by: str
    since: datetime | None = None
    groups: tuple[CostGroup, ...] = ()
    total: tuple[CostGroup, ...] = ()
    """All runs together, in each currency."""
    pools: tuple[PoolCost, ...] = ()
    scanned: int = 0
    next_before: datetime | None = None
    """Older runs are left out, as one call reads at most SCANNED_MAX; None if none are."""


def read_costs(clients: Clients, by: str, filters: Filters) -> Costs:
    """The costs of the runs that match; each thousand are one storage operation. Rejected requests are left out.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the index cannot be listed.
    """
    found = list_runs(clients, filters, limit=SCANNED_MAX + 1)
    rows = [row for row in found.rows if row.model_name is not None]
    return Costs(
        by=by,
        since=filters.since,
        groups=_groups((name, row) for row in rows for name in _names(row, by)),
        total=_groups(("total", row) for row in rows),
        scanned=found.scanned,
        next_before=found.next_before,
    )


def _groups(named: Iterable[tuple[str, IndexRow]]) -> tuple[CostGroup, ...]:
    groups: dict[tuple[str, str | None], CostGroup] = {}
    for name, row in named:
        groups.setdefault((name, row.currency), CostGroup(name=name, currency=row.currency)).add(row)
    return tuple(sorted(groups.values(), key=lambda group: (-group.cost - group.at_most, group.name)))


def _names(row: IndexRow, by: str) -> Sequence[str]:
    """The groups that the run is in."""
    if by == "label":
        return [f"{key}={value}" for key, value in row.labels.items()] or ["none"]
    names = {
        "model": in_team(row.team, row.model_name or ""),
        "team": row.team or "none",
        "user": row.sent_by or "unknown",
    }
    return [names[by]]
