"""The persistent resources that runs may use: what the policy says of them, and what the service shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


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
