"""What a job costs by the hour and at most, by a table of published prices; what the table lacks is unknown."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from trainmaster.orchestrator.core.admission.candidates import Candidate, pools_of
from trainmaster.orchestrator.core.policy.currency import amount
from trainmaster.orchestrator.core.requests.spec import Disk, JobSpec, WorkerPool
from trainmaster.orchestrator.core.requests.tuning import Tuning
from trainmaster.orchestrator.core.runs.record import Estimate

HOURS_PER_MONTH = 730
"""By which prices per month become prices per hour: https://cloud.google.com/compute/disks-image-pricing"""
DEFAULT_TIMEOUT_S = 7 * 24 * 3600
"""How long a job runs at most that names no timeout:
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Prices per hour by machine type and accelerator type, per GB and month by disk type.

    `whole` are the machine types whose price has that of their accelerators in it.
    """

    machines: Mapping[str, Decimal]
    accelerators: Mapping[str, Decimal]
    disks: Mapping[str, Decimal]
    whole: frozenset[str] = frozenset()


_EMPTY = Table(machines={}, accelerators={}, disks={})


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The price table, by region: schemas/prices.v1.schema.json. Nothing is known of a region that it lacks.

    `as_of` is the date of the oldest row. A machine or accelerator without a price for Spot VMs counts with its
    standard price, which is more.
    """

    as_of: str
    currency: str
    standard: Mapping[str, Table]
    spot: Mapping[str, Table]


# Any: the schema vouches for the types.
def prices_from(document: Mapping[str, Any]) -> Prices:
    """The table in a document that its schema accepts; of another, errors of any kind. A later row wins."""
    rows = document["rows"]
    return Prices(
        as_of=min(row["as_of"] for row in rows),
        currency=document["currency"],
        standard=_tables(row for row in rows if not row.get("spot", False)),
        spot=_tables(row for row in rows if row.get("spot", False)),
    )


def _tables(rows: Iterable[Mapping[str, Any]]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for row in rows:
        fee = 1 + amount(row.get("fee", 0))
        priced = {
            key: {name: amount(price) * fee for name, price in row.get(key, {}).items()}
            for key in ("machines", "accelerators", "disks")
        }
        whole = frozenset(priced["machines"]) if row.get("with_accelerators", False) else frozenset()
        for region in row["regions"]:
            before = tables.get(region, _EMPTY)
            tables[region] = Table(
                machines={**before.machines, **priced["machines"]},
                accelerators={**before.accelerators, **priced["accelerators"]},
                disks={**before.disks, **priced["disks"]},
                whole=(before.whole - priced["machines"].keys()) | whole,
            )
    return tables


def estimate(spec: JobSpec, region: str, prices: Prices) -> Estimate:
    """What the job costs there: `at_most` is the price of an hour for as long as the job may run.

    Of a tuning, every trial counts for that long; `per_hour` has as many as may run at once.
    """
    pools = [list(_parts(pool, spec, region, prices)) for _, pool in pools_of(spec.cluster)]
    unknown = {f"{part.name} in {region}" for parts in pools for part in parts if part.price is None}
    if unknown:
        names = tuple(sorted(unknown))
        return Estimate(currency=prices.currency, as_of=prices.as_of, unknown=names)
    one = sum((part.cost for parts in pools for part in parts), Decimal(0))
    trials, at_once = 1, 1
    if isinstance(spec.work, Tuning):
        trials, at_once = spec.work.max_trials, min(spec.work.parallel_trials, spec.work.max_trials)
    hours = Decimal(spec.scheduling.timeout_s or DEFAULT_TIMEOUT_S) / 3600
    return Estimate(
        per_hour=one * at_once, at_most=one * trials * hours, currency=prices.currency, as_of=prices.as_of
    )


def estimate_of(candidates: Iterable[Candidate], prices: Prices) -> Estimate:
    """The estimate of the dearest candidate, for any may be the one that runs.

    Where the price of one is unknown, that of the dearest other is the least that must be reckoned with.
    """
    estimates = [estimate(candidate.spec, candidate.region, prices) for candidate in candidates]
    unknown = {each for found in estimates for each in found.unknown}
    dearest = max(estimates, key=lambda found: found.at_most or 0)
    return replace(dearest, unknown=tuple(sorted(unknown)))


def dearest_role(spec: JobSpec, region: str, prices: Prices) -> str:
    """The role whose replicas cost the most together; what is unknown counts as nothing."""
    costs = {
        role: sum(part.cost for part in _parts(pool, spec, region, prices))
        for role, pool in pools_of(spec.cluster)
    }
    return max(costs, key=lambda role: costs[role])


@dataclass(frozen=True, kw_only=True)
class _Part:
    """So many of something, in all replicas of a role, each at this price per hour."""

    name: str
    count: Decimal
    price: Decimal | None

    @property
    def cost(self) -> Decimal:
        return self.count * (self.price or 0)


def _parts(pool: WorkerPool, spec: JobSpec, region: str, prices: Prices) -> Iterator[_Part]:
    standard = prices.standard.get(region, _EMPTY)
    tables = [prices.spot.get(region, _EMPTY), standard] if spec.scheduling.spot else [standard]
    table = next((each for each in tables if pool.machine in each.machines), _EMPTY)
    yield _Part(name=pool.machine, count=Decimal(pool.replicas), price=table.machines.get(pool.machine))
    if pool.accelerator is not None and pool.machine not in table.whole:
        kind = pool.accelerator.type
        yield _Part(
            name=kind,
            count=Decimal(pool.replicas * pool.accelerator.count),
            price=next((each.accelerators[kind] for each in tables if kind in each.accelerators), None),
        )
    disk = pool.disk or Disk()
    yield _Part(
        name=disk.type,
        count=Decimal(pool.replicas * disk.size_gb) / HOURS_PER_MONTH,
        price=standard.disks.get(disk.type),
    )
