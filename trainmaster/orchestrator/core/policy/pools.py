"""The persistent resources that runs may use: what the policy says of them, and what the service shows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, listed
from trainmaster.orchestrator.core.documents.values import list_at, text_at, texts_at, whole_at


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


def pool_faults(
    pools: Sequence[object],
    *,
    regions: Collection[str] | None,
    counts: Mapping[str, Mapping[str, object]] | None,
    teams: Collection[str] | None,
) -> Iterator[Fault]:
    """What is wrong with the policy's pools, as it writes them, beside what its schema refuses.

    `counts` are those of accelerators, by machine and type. What is None is not compared with.
    """
    ids = [text_at(pool, "id") for pool in pools]
    for number, pool in enumerate(pools):
        at, region, machine = ("pools", number), text_at(pool, "region"), text_at(pool, "machine")
        kind, count = text_at(pool, "accelerator", "type"), whole_at(pool, "accelerator", "count")
        if ids[number] is not None and ids[number] in ids[:number]:
            yield Fault(at=(*at, "id"), problem=f"{ids[number]} is there twice", repair="give it another id")
        if regions is not None and region is not None and region not in regions:
            yield Fault(at=(*at, "region"), problem=f"{region!r} is none of regions", among=regions)
        if counts is not None and machine is not None:
            if machine not in counts:
                yield Fault(at=(*at, "machine"), problem=f"{machine!r} is none of machines")
            elif kind is not None and count not in list_at(counts[machine], kind):
                problem = f"{machine} does not support {count} of {kind}"
                yield Fault(at=(*at, "accelerator"), problem=problem)
        if teams is not None and (unknown := sorted(set(texts_at(pool, "teams")) - set(teams))):
            yield Fault(at=(*at, "teams"), problem=f"{listed(unknown)} is none of teams", among=teams)
