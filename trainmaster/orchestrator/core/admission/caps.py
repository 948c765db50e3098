"""Compares the policy's caps with the runs that have already started: one more may start, or a cap refuses it."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.policy.admission import Caps
from trainmaster.orchestrator.core.policy.currency import money

COUNTED_MAX = 50_000
"""Marks that are counted for one decision: at most 100 storage operations, with those of the ends."""


@dataclass(frozen=True, kw_only=True)
class CountedEnd:
    """The mark of what an ended run cost: when it was created, in which version, and the cost."""

    created_at: datetime
    version: int
    cost: Decimal


@dataclass(frozen=True, kw_only=True)
class CountedStart:
    """A run that was started. `created_at` is when its mark was created, by the clock of the store.

    `hour` is the one in the mark's name, by the clock of the attempt that wrote it, so the two may differ at the edge
    of an hour. `version`: of marks created at the same moment, the smaller is the earlier.
    `cost` is the most that the run may cost. None: unknown, which counts as nothing. With an `end`, the run counts with
    its real cost for the runs that are marked after that.

    The `runs` of a group have one mark, with the group's id and the cost of all, and one end: when the last has ended.
    """

    run_id: str
    created_at: datetime
    cost: Decimal | None
    hour: datetime | None = None
    version: int = 0
    end: CountedEnd | None = None
    runs: int = 1

    @property
    def counts_at(self) -> datetime:
        """A moment, in UTC, of the hour in which the run counts."""
        return (self.hour or self.created_at).astimezone(UTC)

    @property
    def order(self) -> tuple[datetime, int, str]:
        """Runs sort by it: the smallest came first."""
        return self.created_at, self.version, self.run_id


@dataclass(frozen=True, kw_only=True)
class CapReached:
    """A cap that leaves no room for the run.

    `window` names the cap and its period, `runs_per_hour/2026-11-21T13`: the same for every run that it refuses.
    """

    window: str
    fault: Fault


def over_cap(caps: Caps, counted: Sequence[CountedStart], own: CountedStart) -> CapReached | None:
    """The cap that leaves no room for `own` after the runs before it. None: the run may start.

    Hours and days are in UTC, and are those of `own`. `own` may be among `counted`, and counts once. Runs are admitted
    in the order in which their marks were created. A run without room is skipped and uses none, whether it has a mark or
    not. What a run did not spend is free for the runs whose marks were created after that of its end, for no
    earlier one. So every reader decides the same for each run, whenever it reads, and if listings show all existing
    marks, no more runs start than the caps allow. With more than COUNTED_MAX marks nothing is decided: no run starts.
    """
    if len(counted) > COUNTED_MAX:
        return _too_many_to_count(own.counts_at)
    day = own.counts_at.date()
    runs = {start.run_id: start for start in counted} | {own.run_id: own}
    runs_by_hour: dict[int, int] = {}
    cost = Decimal(0)
    unspent: list[tuple[datetime, int, Decimal]] = []  # of the admitted runs, a heap by the mark of the end
    reached: CapReached | None = None
    for run in sorted(runs.values(), key=lambda start: start.order):
        moment = run.counts_at
        if moment.date() != day:
            continue
        while unspent and unspent[0][:2] < run.order[:2]:
            cost -= heapq.heappop(unspent)[2]
        reached = _cap_exceeded_by(caps, run, moment, runs_by_hour.get(moment.hour, 0), cost)
        if run.run_id == own.run_id:
            break
        if reached is None:
            runs_by_hour[moment.hour] = runs_by_hour.get(moment.hour, 0) + run.runs
            cost += run.cost or 0
            if run.end is not None and run.cost is not None:
                heapq.heappush(unspent, (run.end.created_at, run.end.version, run.cost - run.end.cost))
    return reached


def _cap_exceeded_by(
    caps: Caps, run: CountedStart, moment: datetime, runs: int, cost: Decimal
) -> CapReached | None:
    """The cap that the run exceeds after that many runs in its hour and that cost in its day."""
    if caps.runs_per_hour is not None and runs + run.runs > caps.runs_per_hour:
        return _of_runs(caps.runs_per_hour, run.runs, runs, moment)
    if caps.cost_per_day is not None and run.cost is not None and cost + run.cost > caps.cost_per_day:
        return _of_cost(caps, caps.cost_per_day, run, cost, moment)
    return None


def _too_many_to_count(moment: datetime) -> CapReached:
    fault = Fault(
        path="$",
        problem=f"more runs were started on {moment:%Y-%m-%d} (UTC) than the {COUNTED_MAX:,} that the service counts for a cap",
        found=f"one more, after {COUNTED_MAX:,}",
        allowed=f"{COUNTED_MAX:,} runs a day, where the policy has runs_per_hour or cost_per_day",
        repair="submit it again tomorrow; for this many runs a day, ask for the caps to be removed from the policy",
    )
    return CapReached(window=f"runs_counted/{moment:%Y-%m-%d}", fault=fault)


def _of_runs(cap: int, wanted: int, before: int, moment: datetime) -> CapReached:
    free = (moment + timedelta(hours=1)).replace(minute=0)
    runs = "1 run was" if before == 1 else f"{before} runs were"
    why, after = "as many as the policy's runs_per_hour allows", f"after {free:%H:%M} UTC"
    if before < cap:
        why = f"and the policy's runs_per_hour leaves no room for all {wanted} of the matrix"
    if wanted > cap:
        after = "with fewer values in its matrix" + (f", {after}" if before >= cap else "")
    fault = Fault(
        path="$",
        problem=f"{runs} started in the hour from {moment:%H}:00 UTC, {why}",
        found=f"{'one' if wanted == 1 else wanted} more, after {before}",
        allowed=f"{cap} {'run' if cap == 1 else 'runs'} an hour",
        repair=f"submit it again {after}; if you need this many, ask for runs_per_hour to be raised in the policy",
    )
    return CapReached(window=f"runs_per_hour/{moment:%Y-%m-%dT%H}", fault=fault)


def _of_cost(caps: Caps, cap: Decimal, run: CountedStart, before: Decimal, moment: datetime) -> CapReached:
    currency, own = caps.currency, run.cost or Decimal(0)
    what = "this run" if run.runs == 1 else f"the {run.runs} runs of this matrix"
    fault = Fault(
        path="$",
        problem=f"the runs started on {moment:%Y-%m-%d} (UTC) have cost or may still cost {money(before, currency)}, "
        f"and the policy's cost_per_day is {money(cap, currency)}",
        found=f"at most {money(own, currency)} for {what}",
        allowed=f"{money(max(cap - before, Decimal(0)), currency)} more today",
        repair="submit it again when one of them has ended, which then counts with its real cost, or tomorrow; "
        "set a shorter scheduling.timeout_s or use fewer replicas; "
        "if you need this much, ask for cost_per_day to be raised in the policy",
    )
    return CapReached(window=f"cost_per_day/{moment:%Y-%m-%d}", fault=fault)
