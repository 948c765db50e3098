"""Conditions inside `all`: whether they hold together, and what they lack.

A signal is remembered until the rule fires, so a group without a schedule stays due, as data does. A group with a
schedule is decided at its times, and fires as that schedule.
"""

import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.condition import Age, All, Condition
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.state import DueFiring, RuleState, met_key
from trainmaster.orchestrator.core.retraining.waiting import counted_by

Since = Callable[[Condition], datetime | None]
"""Since when a condition that a tick decides holds; None if it does not."""


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """A firing that would be due if the other conditions of its group held; `reason` says what they lack.

    `passes`: the time of the group's schedule has come, and passes without a firing.
    """

    due: DueFiring
    reason: str
    passes: bool


def group_due(group: All, state: RuleState, now: datetime, since: Since) -> DueFiring | Lacking:
    """The firing, if all conditions of the group hold, or what they lack."""
    timer, holds, signals = group.schedule, dict[Condition, datetime | None](), list[DueFiring]()
    for member in group.conditions:
        signal = state.met.get(met_key(member))
        signals += [signal] if signal is not None else []
        # At its scheduled time, a group takes the data as it is.
        asked = replace(member, quiet_s=0) if timer is not None and isinstance(member, NewData) else member
        holds[member] = signal.at if signal is not None else since(asked)
    scheduled = holds[timer] if timer is not None else None
    latest = scheduled or max(filter(None, holds.values()), default=now)
    due = DueFiring(
        condition=ConditionKind.ALL if timer is None else ConditionKind.SCHEDULE,
        event_id=f"{ConditionKind.ALL}/{encoded_time(latest)}",
        at=now,
        values={name: text for signal in signals for name, text in signal.values.items()},
        image=next((signal.image for signal in signals if signal.image), None),
    )
    lacks = listed(_lack(member, state) for member, begun in holds.items() if begun is None)
    if timer is not None and scheduled is not None and lacks:
        local = scheduled.astimezone(zoneinfo.ZoneInfo(timer.time_zone))
        return Lacking(due=due, reason=f"{local:%A %Y-%m-%d %H:%M} was due, but {lacks}", passes=True)
    return Lacking(due=due, reason=lacks, passes=False) if lacks else due


def _lack(member: Condition, state: RuleState) -> str:
    """Why the condition does not hold."""
    match member:
        case NewData():
            counted = counted_by(state, member)
            if counted.count < member.min_objects:
                return f"{counted.count:,} of {member.min_objects:,} objects have arrived"
            if counted.size_bytes < member.min_bytes:
                return f"{counted.size_bytes:,} of {member.min_bytes:,} bytes have arrived"
            return f"no {member.quiet_s} s have passed without a new object"
        case Age():
            return f"there is no champion that is {member.older_than_s} s old"
        case _:
            return f"{member} has not come"
