"""Caps turn a storm into one clear refusal: the runs that were started are counted by marks, one object each.

The order, for a run that is not on record:

    look      the marks of the hour, or the day; where they leave no room, the run is refused and nothing is written
    mark      its own; a redelivery that meets it is not counted twice. An hour's marks are looked at, or a day's
              where cost counts; so without a cap of cost, one in a later hour counts in that one too: less may go
              then than the cap allows, and never more. With one, it counts in the hour of its mark
    look      again: the marks have an order that is the same for everybody, and so has whom they leave no room
    record    reserved or rejected; whoever wrote the rejection takes the mark away

An hour is the one that a mark's name says, by the clock of whoever made it; so all who look agree on it, though the
store's clock, which orders the marks, may have gone into the next.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.orchestrator.core.admission.caps import CapReached, Counted, over_cap
from trainmaster.orchestrator.core.notices.notice import CapPayload, cap_reached
from trainmaster.orchestrator.core.policy.admission import Caps
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import Services

KEPT = timedelta(days=1)
"""Marks of the days before this one's day are of no more use: a delivery may still count in yesterday's."""
FORGOTTEN_AT_ONCE = 500
TIDY_MINUTES = 5
"""Old marks go in the first minutes of an hour: a listing every minute would cost more than the marks do."""


@dataclass(frozen=True, kw_only=True)
class OverCap:
    """The cap that refuses the run, and the mark that it has all the same."""

    reached: CapReached
    mark: Counted | None


def over_caps(services: Services, run_id: str, cost: Decimal | None) -> OverCap | None:
    """Which cap refuses one more run; None: it may go, and is counted. Without caps that count it costs nothing."""
    policy = services.standards().policy
    caps = policy.admission.caps if policy is not None else Caps()
    if not caps.counted:
        return None
    now = services.clock.now()
    marks = _marks(services, caps, now)
    own = _own(marks, run_id)
    if own is None:
        # The marks have the store's clock: whatever is there already was before.
        latest = max((now, *(mark.created_at for mark in marks)))
        last = Counted(run_id=run_id, created_at=latest, cost=cost, hour=now, version=sys.maxsize)
        reached = over_cap(caps, marks, last)
        if reached is not None:
            return OverCap(reached=reached, mark=None)
        services.starts.mark(run_id, now, cost)
        marks = _marks(services, caps, now)
        own = _own(marks, run_id) or last
    reached = over_cap(caps, marks, own)
    return None if reached is None else OverCap(reached=reached, mark=own)


def _marks(services: Services, caps: Caps, now: datetime) -> Sequence[Counted]:
    """What counts beside a run that is started now: an hour's runs, or a day's where their cost counts."""
    if caps.cost_per_day is None:
        return services.starts.of_hour(now)
    return services.starts.of_day(now.date())


def _own(marks: Sequence[Counted], run_id: str) -> Counted | None:
    return next((mark for mark in marks if mark.run_id == run_id), None)


def tell_cap(services: Services, record: RunRecord) -> None:
    """Tell that the cap was reached which refused the run: once for each window, however many it refused.

    At least once: two at the same time may both tell it, under the same id.
    """
    window = record.rejection.cap if record.rejection else None
    if window is None or services.starts.was_told(window):
        return
    reached = CapPayload(window=window, reason="; ".join(record.problems), run_id=record.run_id)
    notice = cap_reached(reached, record.updated_at)
    services.notices.publish(notice)
    services.starts.keep_told(window, {"schema": "cap_reached.v1", **notice.data})


def forget_old_starts(services: Services) -> int:
    """Take old marks away, once an hour; how many went."""
    now = services.clock.now()
    if now.minute >= TIDY_MINUTES:
        return 0
    policy = services.standards().policy
    if policy is None or not policy.admission.caps.counted:
        return 0
    return services.starts.forget(now.date() - KEPT, FORGOTTEN_AT_ONCE)
