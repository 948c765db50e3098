"""The cost of a request by a table of published prices, compared with the policy's caps.

A price that the table lacks is unknown. A machine or accelerator without a Spot price counts with its standard price,
which is higher.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate
from typing import TypeAlias

from trainmaster.orchestrator.core.admission.candidates import Candidate, parse_candidates, pools_of
from trainmaster.orchestrator.core.admission.prices import Prices, series_of
from trainmaster.orchestrator.core.admission.retries import tries_of
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, Refused, listed
from trainmaster.orchestrator.core.policy.admission import Caps, UnknownPrices
from trainmaster.orchestrator.core.policy.currency import money
from trainmaster.orchestrator.core.policy.policy import Machines, Policy
from trainmaster.orchestrator.core.requests.disks import boot_disks
from trainmaster.orchestrator.core.requests.draft import FALLBACKS
from trainmaster.orchestrator.core.requests.evaluation import follow_up_specs
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import Disk, JobSpec, WorkerPool
from trainmaster.orchestrator.core.runs.record import Estimate

HOURS_PER_MONTH = 730
"""Converts monthly prices to hourly ones: https://cloud.google.com/compute/disks-image-pricing"""
SERVICE_TIMEOUT_S = 7 * 24 * 3600
"""How long Vertex AI lets a job without a timeout run; only runs of older versions have none:
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"""


def estimate(spec: JobSpec, region: str, prices: Prices, machines: Sequence[Machines] = ()) -> Estimate:
    """What a run costs in that region: `at_most` is the hourly price times the longest time that its job may run.

    For tuning, every trial counts with that time; `per_hour` counts as many trials as may run in parallel. Every retry
    counts as another job, on larger machines of the policy's `machines` if it may take those; one whose price is unknown
    counts as the machine before it, and `at_most` is then a lower bound.
    """
    tries = [role_prices(one, region, prices) for one in tries_of(spec, machines)]
    unknown = tuple(sorted({name for roles in tries for name in unknown_of(roles)}))
    known = Estimate(currency=prices.currency, as_of=prices.as_of, unknown=unknown)
    if unknown_of(tries[0]):
        return known
    one, *more = accumulate(
        (sum((role.per_hour for role in roles.values()), Decimal(0)) for roles in tries), max
    )
    trials, at_once = 1, 1
    if spec.tuning:
        trials, at_once = spec.tuning.max_trials, min(spec.tuning.parallel_trials, spec.tuning.max_trials)
    hours = Decimal(spec.scheduling.timeout_s or SERVICE_TIMEOUT_S) / 3600
    return replace(known, per_hour=one * at_once, at_most=sum(more, one) * trials * hours)


def estimate_of(
    candidates: Iterable[Candidate], prices: Prices, machines: Sequence[Machines] = ()
) -> Estimate:
    """The estimate of the most expensive candidate, because any of them may run.

    If a candidate's price is unknown, the most expensive of the others is a lower bound.
    """
    estimates = [estimate(candidate.spec, candidate.region, prices, machines) for candidate in candidates]
    unknown = {reason for estimated in estimates for reason in estimated.unknown}
    dearest = max(estimates, key=lambda estimated: estimated.at_most or 0)
    return replace(dearest, unknown=tuple(sorted(unknown)))


def with_follow_ups(
    found: Estimate, document: Mapping[str, object], region: str, policy: Policy | None, prices: Prices
) -> Estimate:
    """The estimate of a run with the jobs that score its model and try it out, if there may be such."""
    for spec in follow_up_specs(document, policy):
        more = estimate(spec, region, prices)
        at_most = None if found.at_most is None else found.at_most + (more.at_most or 0)
        found = replace(found, at_most=at_most, unknown=tuple(sorted({*found.unknown, *more.unknown})))
    return found


@dataclass(frozen=True, kw_only=True)
class RolePrice:
    """What all replicas of a role cost per hour, without what `unknown` names."""

    per_hour: Decimal
    unknown: tuple[str, ...]


def role_prices(spec: JobSpec, region: str, prices: Prices) -> Mapping[str, RolePrice]:
    """The price of each role, the chief's first. Of a tuning, for one trial."""
    pools = {role: list(_parts(pool, spec, region, prices)) for role, pool in pools_of(spec.cluster)}
    return {
        role: RolePrice(
            per_hour=sum((part.cost for part in parts), Decimal(0)),
            unknown=tuple(f"{part.name} in {region}" for part in parts if part.price is None),
        )
        for role, parts in pools.items()
    }


def unknown_of(roles: Mapping[str, RolePrice]) -> tuple[str, ...]:
    """What has no price in any role."""
    return tuple(sorted({name for role in roles.values() for name in role.unknown}))


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A quantity of one thing, in all replicas of a role, at this price per hour each."""

    name: str
    count: Decimal
    price: Decimal | None

    @property
    def cost(self) -> Decimal:
        return self.count * (self.price or 0)


def _parts(pool: WorkerPool, spec: JobSpec, region: str, prices: Prices) -> Iterator[_Part]:
    """Nothing on a persistent resource, which alone is billed.

    Source: https://cloud.google.com/vertex-ai/docs/training/persistent-resource-overview
    """
    if spec.persistent_resource:
        return
    standard = prices.table(region)
    tables = [prices.table(region, spot=True), standard] if spec.scheduling.spot else [standard]
    table = next((table for table in tables if table.machine(pool.machine) is not None), standard)
    count = pool.replicas
    if pool.tpu_topology is not None:
        # One replica may be several hosts: the topology gives the chips of all of them.
        _, chips = series_of(pool.machine)
        count = max(count, math.ceil(math.prod(map(int, pool.tpu_topology.split("x"))) / chips))
    yield _Part(name=pool.machine, count=Decimal(count), price=table.machine(pool.machine))
    if pool.accelerator is not None and not table.is_whole(pool.machine):
        kind = pool.accelerator.type
        yield _Part(
            name=kind,
            count=Decimal(pool.replicas * pool.accelerator.count),
            price=next((table.accelerators[kind] for table in tables if kind in table.accelerators), None),
        )
    disk = pool.disk or Disk()
    disk_type = disk.type or boot_disks(pool.machine)[0]
    yield _Part(
        name=disk_type,
        count=Decimal(pool.replicas * disk.size_gb) / HOURS_PER_MONTH,
        price=standard.disks.get(disk_type),
    )


ReadPrices: TypeAlias = Callable[[], Prices]
"""Reads the price table when it is first needed: a duplicate event and a refused request need none."""


def with_price(
    request: Request | Refused, policy: Policy | None, prices: ReadPrices | None
) -> Request | Refused:
    """A valid request with the cost of its most expensive candidate; refused if a cap does not allow that cost.

    The price table is read only if the policy needs it. An unknown price is a warning under a cost cap, and a fault if
    the policy says so.
    """
    if isinstance(request, Refused) or policy is None or prices is None or not policy.admission.priced:
        return request
    caps, candidates, table = policy.admission.caps, parse_candidates(request.document), prices()
    document = request.document
    estimates = [
        (candidate, with_follow_ups(found, document, candidate.region, policy, table))
        for candidate in candidates
        for found in [estimate(candidate.spec, candidate.region, table, policy.machines)]
    ]
    faults = [fault for pair in estimates if (fault := _too_dear(caps, *pair, table))]
    unknown = [_unknown(caps, *pair) for pair in estimates if caps.of_cost and pair[1].unknown]
    if caps.unknown_prices is UnknownPrices.REFUSE:
        faults, unknown = faults + unknown, []
    if faults:
        return Refused(faults=tuple(sorted(fault.moved(request.written_path) for fault in faults)))
    warnings = {*request.warnings, *(fault.moved(request.written_path) for fault in unknown)}
    whole = with_follow_ups(
        estimate_of(candidates, table, policy.machines), document, document["region"], policy, table
    )
    return replace(request, warnings=tuple(sorted(warnings)), estimate=whole)


def _unknown(caps: Caps, candidate: Candidate, found: Estimate) -> Fault:
    is_refused = caps.unknown_prices is UnknownPrices.REFUSE
    repair = "use something else, or ask for its price to be added to prices.yaml"
    return Fault(
        at=(*_place(candidate), "cluster"),
        problem=f"its cost is unknown: no price for {listed(found.unknown)}",
        repair=repair if is_refused else "the cost caps cannot be applied",
    )


def _too_dear(caps: Caps, candidate: Candidate, found: Estimate, prices: Prices) -> Fault | None:
    cap = min((cap for cap in (caps.cost_per_run, caps.cost_per_day) if cap is not None), default=None)
    if cap is None or found.at_most is None or found.per_hour is None or found.at_most <= cap:
        return None
    name = "cost_per_run" if cap == caps.cost_per_run else "cost_per_day"
    allowed = f"at most {money(cap, caps.currency)}, by the policy's {name}"
    cost = f"{money(found.at_most, found.currency)}, at {money(found.per_hour, found.currency)} an hour"
    roles = role_prices(candidate.spec, candidate.region, prices)
    role = max(roles, key=lambda name: roles[name].per_hour)
    return Fault(
        at=(*_place(candidate), "cluster", role),
        problem=f"the run may cost too much, mostly for {role}",
        found=cost,
        allowed=allowed,
        repair="set a shorter scheduling.timeout_s, use fewer replicas or smaller machines, "
        f"or ask for {name} to be raised in the policy",
    )


def _place(candidate: Candidate) -> tuple[PathPart, ...]:
    return () if candidate.number == 0 else (FALLBACKS, candidate.number - 1)


def currency_problem(caps: Caps, prices: Prices) -> str | None:
    """Why the caps cannot be checked with the table, if so: amounts in two currencies cannot be compared."""
    if not caps.of_cost or caps.currency == prices.currency:
        return None
    return (
        f"the prices are in {prices.currency}, but the policy's caps are in {caps.currency}; "
        "use one currency for both"
    )
