"""A rule as its user knows it: the file, where it stands, and what comes next. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.client.terminal import plural
from trainmaster.orchestrator.core.documents.codec import encoded, encoded_time
from trainmaster.orchestrator.core.retraining.condition import Age, All, Condition, Schedule, members_of
from trainmaster.orchestrator.core.retraining.decision import limits_end
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.state import (
    MatchCount,
    RuleStanding,
    RuleState,
    RuleStatus,
    met_key,
)
from trainmaster.orchestrator.core.retraining.waiting import counted_by, folders_by

NO_STATUS = "unanswered"
"""The state of a file that the service has not answered yet."""
RETIRING = "retiring"
SKIPPED_MAX = 100
"""Scheduled times in windows of the rule's `blackout` that are skipped in search of the next one."""
PAUSED = "paused"
"""The state of a rule whose file is deleted, until the service retires it."""


def state_word(state: RuleStanding) -> str:
    """The word for people: a rule with `enabled: false` is paused, as by `rules pause`. For programs it is `disabled`."""
    return PAUSED if state is RuleStanding.DISABLED else state


@dataclass(frozen=True, kw_only=True)
class FoundRule:
    """A rule's file in the inbox or in the rule book, and what the ledger says about it.

    Attributes:
        rule_id: None if the file's name gives none.
        rule: the version in the book, which decides; None before the first was accepted.
        state: what the rule remembers; read only where it is needed.
        has_file: whether the inbox still has it.
    """

    dropped_name: str
    rule_id: str | None
    status: RuleStatus | None = None
    rule: Rule | None = None
    state: RuleState | None = None
    has_file: bool = True

    @property
    def name(self) -> str:
        """The rule's id, or the file's name without one."""
        return self.rule_id or self.dropped_name

    @property
    def standing(self) -> str:
        """The rule's state in words, for people."""
        if not self.has_file:
            return RETIRING
        return state_word(self.status.state) if self.status is not None else NO_STATUS

    @property
    def decides(self) -> bool:
        """Whether the rule may fire."""
        return self.rule is not None and self.rule.enabled and self.has_file

    def document(self, now: datetime) -> dict[str, Any]:
        """For programs: schemas/rule_view.v1.schema.json."""
        next_at = self.next_at(now)
        found = {
            "schema": "rule_view.v1",
            "rule_id": self.rule_id,
            "dropped_name": self.dropped_name,
            "status": encoded(self.status) if self.status else None,
            "rule": self.rule.document if self.rule else None,
            "state": encoded(self.state) if self.state else None,
            "next_at": encoded_time(next_at) if next_at else None,
        }
        return {key: value for key, value in found.items() if value is not None}

    def next_at(self, now: datetime) -> datetime | None:
        """When it fires next if nothing more happens, within its limits; None if that depends on an event, or it may not fire."""
        if not self.decides:
            return None
        return min((each.due_at for each in self.awaited(now) if each.due_at), default=None)

    def awaited(self, now: datetime) -> Iterator["Awaited"]:
        """Each condition in force, with how far it is met; of `all` each of its conditions, the first with the time of all."""
        if self.rule is None:
            return
        free_at = self._limits_end(self.rule, now)
        for condition in self.rule.conditions:
            members = [self._progress_of(condition, member) for member in members_of(condition)]
            due_at = self._due_at(condition, members, self.rule, now, free_at)
            for index, awaited in enumerate(members):
                together = f"all of {len(members)}: " if len(members) > 1 else ""
                tick = _next_tick(due_at) if due_at is not None and index == 0 else None
                yield replace(awaited, text=together + awaited.text, due_at=tick)

    def _progress_of(self, condition: Condition, member: Condition) -> "Awaited":
        """How far the condition, or this one of its members, is met; `due_at` is when it is, if nothing more happens."""
        if isinstance(member, NewData):
            is_timed = isinstance(condition, All) and condition.schedule is not None
            return _awaited_data(replace(member, quiet_s=0) if is_timed else member, self._count_of(member))
        met = self.state.met if self.state is not None and isinstance(condition, All) else {}
        came = met.get(met_key(member))
        return Awaited(text=f"{member}{', which has come' if came else ''}", due_at=came.at if came else None)

    def _due_at(
        self, condition: Condition, members: Sequence["Awaited"], rule: Rule, now: datetime, free_at: datetime
    ) -> datetime | None:
        """When the condition fires the rule if nothing more happens; None if that depends on an event."""
        timer = next((member for member in members_of(condition) if isinstance(member, Schedule)), None)
        pairs = zip(members_of(condition), members, strict=True)
        others = [each.due_at for member, each in pairs if member is not timer]
        if None in others or (timer is not None and not self.decides):
            return None
        ready = max([now, *filter(None, others)])
        if timer is not None:
            return _next_scheduled(timer, rule, ready, free_at)
        return rule.free_from(max(ready, free_at))  # data stays due while a limit holds the rule back

    def _limits_end(self, rule: Rule, now: datetime) -> datetime:
        last = self.status.last_firing if self.status else None
        times = (last.at if last else None, self.state.fired_last_at if self.state else None)
        fired_at = self.state.fired_at if self.state else ()
        return limits_end(rule, now, fired_last_at=max(filter(None, times), default=None), fired_at=fired_at)

    def counts(self) -> Iterator[str]:
        """How much of each condition is met: `12 of 100 objects`, or `104 objects, enough`; of `all`, `1 of 2 signals`."""
        if self.rule is None:
            return
        for condition in self.rule.new_data:
            counted, needed = self._count_of(condition), condition.min_objects
            folders = len(folders_by(self.state, condition)) if self.state and condition.each else 0
            among = f" in the first of {folders} folders" if folders > 1 else ""
            enough = f"{counted.count} objects{among}, enough"
            yield f"{counted.count} of {needed} objects{among}" if counted.count < needed else enough
        for group in self.rule.groups:
            signals = [each for each in group.conditions if not isinstance(each, NewData | Schedule | Age)]
            came = sum(met_key(each) in self.state.met for each in signals) if self.state else 0
            if signals:
                yield f"{came} of {plural(len(signals), 'signal')}"

    def _count_of(self, condition: NewData) -> MatchCount:
        """What the condition has counted; with `each`, in the folder that comes first."""
        if self.state is None:
            return MatchCount()
        folders = folders_by(self.state, condition) if condition.each else []
        return folders[0] if folders else counted_by(self.state, condition)

    def held_reason(self) -> str | None:
        """Why the last firing that was due has not happened."""
        return self.status.held.reason if self.status and self.status.held else None


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """A condition, and how far it is met.

    Attributes:
        text: the condition in a few words.
        data: a condition on data itself, and `counted` the objects so far.
        due_at: the tick that fires the rule if nothing more happens, in the future; None if that depends on an event.
    """

    text: str
    data: NewData | None = None
    counted: MatchCount = field(default_factory=MatchCount)
    due_at: datetime | None = None


def _next_tick(moment: datetime) -> datetime:
    """The first full minute that is not before the moment: rules that are due fire at ticks."""
    minute = moment.replace(second=0, microsecond=0)
    return minute if minute == moment else minute + timedelta(minutes=1)


def _next_scheduled(condition: Schedule, rule: Rule, now: datetime, free_at: datetime) -> datetime | None:
    """The next scheduled time that is not skipped. With `queue_one`, one that a limit holds back waits for its end."""
    moment = now
    for _ in range(SKIPPED_MAX):
        due_at = condition.next_due(moment)
        if due_at is None or (free := rule.free_from(max(due_at, free_at))) == due_at:
            return due_at
        if rule.while_running is WhileRunning.QUEUE_ONE:
            return free
        moment = free - timedelta(microseconds=1)  # it may come at the end itself
    return None


def _awaited_data(condition: NewData, counted: MatchCount) -> Awaited:
    due_at = None
    enough = counted.count >= condition.min_objects and counted.size_bytes >= condition.min_bytes
    if enough and counted.newest_at is not None and counted.first_at is not None:
        quiet, max_wait = (timedelta(seconds=each) for each in (condition.quiet_s, condition.max_wait_s))
        due_at = min(counted.newest_at + quiet, counted.first_at + max_wait)
    return Awaited(text=str(condition), data=condition, counted=counted, due_at=due_at)
