"""The persistent resources that runs may use: what the policy says of them, and what the service shows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.faults import listed


@dataclass(frozen=True, kw_only=True)
class RunPool:
    """A persistent resource of the policy: machines that stay between runs, all alike.

    Attributes:
        accelerator: as in a request, `type` and `count`.
        teams: whose runs may use it; None: everyone's.
        idle_s: after how long without a run it is deleted; None: never.
        short_s: runs whose timeout is at most that use it without naming it; 0: none do.
    """

    id: str
    region: str
    machine: str
    count: int
    accelerator: Mapping[str, Any] | None = None
    teams: tuple[str, ...] | None = None
    idle_s: int | None = None
    short_s: int = 0


@dataclass(frozen=True, kw_only=True)
class PoolState:
    """A persistent resource as the service shows it; `used` of its `machines` run jobs."""

    name: str
    is_running: bool
    machines: int
    used: int
    created_at: datetime

    @property
    def id(self) -> str:
        return self.name.rpartition("/")[2]


def pool_problems(
    pools: Sequence[RunPool],
    *,
    regions: Sequence[str],
    counts: Mapping[str, Mapping[str, Sequence[int]]],
    teams: Collection[str],
) -> Iterator[str]:
    """Everything that is wrong with the policy's pools; `counts` are those of accelerators, by machine and type."""
    for number, pool in enumerate(pools):
        at, wanted = f"pools[{number}]", pool.accelerator or {}
        if pool.id in [other.id for other in pools[:number]]:
            yield f"{at}.id: {pool.id} is there twice"
        if pool.region not in regions:
            yield f"{at}.region: {pool.region!r} is none of regions ({listed(regions)})"
        if pool.machine not in counts:
            yield f"{at}.machine: {pool.machine!r} is none of machines"
        elif wanted and wanted["count"] not in counts[pool.machine].get(wanted["type"], ()):
            yield f"{at}.accelerator: {pool.machine} does not support {wanted['count']} of {wanted['type']}"
        if unknown := sorted(set(pool.teams or ()) - set(teams)):
            yield f"{at}.teams: {listed(unknown)} is none of teams"
