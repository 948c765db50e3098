"""Whether one more run may be started: the policy's caps against what was started already."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from orchestrator.core.admission.terms import Caps
from orchestrator.core.faults import Fault


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A run that was started. `created_at` is when its mark came to be, by the clock of the store of marks.

    `cost` is the most that it may cost; None: unknown, and then it counts as nothing.
    """

    run_id: str
    created_at: datetime
    cost: Decimal | None


@dataclass(frozen=True, kw_only=True)
class CapReached:
    """A cap that leaves no room.

    `window` names cap and time, `runs_per_hour/2026-11-21T13`: the same for all runs that it refuses.
    """

    text: str
    window: str
    fault: Fault


def over_cap(caps: Caps, counted: Sequence[Counted], own: Counted) -> CapReached | None:
    """The cap that is reached when `own` is counted after those that were before it; None: it may go."""
    raise ValueError((caps, counted, own))
