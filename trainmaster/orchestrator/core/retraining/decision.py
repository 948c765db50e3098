"""The decision about a rule: it fires now, or why it does not.

A decision holds the state to write. A run is launched only after that write succeeded under its precondition:

    state with `firing`   written; after a crash here, the firing is launched before anything else is decided
    launch                idempotent by the firing's run id
    `launched(state)`     written; the rule may fire again

A due firing passes these gates, in this order: the rule's last run (`while_running`), the cooldown, `not_before` and
`blackout`, the number of firings within an hour, the daily cap, and values for every placeholder. With `queue_one`, a
firing held back by any gate but the last waits until all let it pass; otherwise a scheduled time or a signal that is
held back is skipped. Data, age and `all` without a schedule stay due.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.condition import Age, All, Condition, Schedule
from trainmaster.orchestrator.core.retraining.filling import VALUE_MAX_CHARS, names_about, why_unfilled
from trainmaster.orchestrator.core.retraining.firing import STAYS_DUE, firing_of, with_firing
from trainmaster.orchestrator.core.retraining.groups import Lacking, group_due
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts, Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.signals import Signal, conditions_met, matches
from trainmaster.orchestrator.core.retraining.state import (
    DAY,
    DueFiring,
    Firing,
    HeldBack,
    MatchCount,
    RuleState,
    has_seen,
    with_met,
    with_seen,
)
from trainmaster.orchestrator.core.retraining.waiting import DataBatch, batch_of, counted_by, folders_by

STORM = 60
STORM_WITHIN = timedelta(hours=1)
"""More firings of one rule than STORM within this time put it into quarantine."""
_UNREAD = dict.fromkeys(names_about("data") - {"data.since"}, "unread")


@dataclass(frozen=True, kw_only=True)
class Fire:
    """Write `state`, then launch its `firing`. `folder`: it takes the data of this folder alone."""

    state: RuleState
    firing: Firing
    folder: str | None = None


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A due firing is held back. Write `state` if it differs from the one read.

    `is_storm`: the rule fired too often. Put it into quarantine before `state` is written.
    """

    state: RuleState
    reason: str
    is_storm: bool = False


@dataclass(frozen=True, kw_only=True)
class NothingDue:
    """Nothing is due."""


Decision = Fire | Hold | NothingDue


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a decision needs besides the rule and its state.

    Attributes:
        champion: the champion of `rule.model_name`.
        current_ended: whether the run `state.current_run` has ended; True if the rule has no current run.
        batch: what the firing takes, once that is known; before, what the state has counted.
    """

    now: datetime
    batch: DataBatch | None = None
    champion: ChampionFacts | None = None
    current_ended: bool = True


def decide_on_tick(rule: Rule, state: RuleState, facts: Facts) -> Decision:
    """The decision at this tick, from the rule's data, schedules, age and queued firing.

    If several firings are due, the first that may fire stands for all of them.
    `state` must come from `state_for`, with all arrivals folded in and no firing left to launch.
    """
    if not rule.enabled:
        return NothingDue()
    held: Hold | None = None
    for due in _due(rule, state, facts):
        decision = _decide_due(rule, held.state if held else state, due, facts)
        if not isinstance(decision, Hold):
            return decision
        # The later state has seen everything; the user sees the reason of the first due firing.
        held = replace(held, state=replace(decision.state, held=held.state.held)) if held else decision
    return held or NothingDue()


def decide_on_signal(rule: Rule, signal: Signal, state: RuleState, facts: Facts) -> Decision:
    """The decision about this signal; NothingDue if it, or the same image, already fired the rule, or it was queued."""
    image = signal.facts.get("digest") if signal.kind is ConditionKind.NEW_IMAGE else None
    is_new = not has_seen(state, signal.id) and (image is None or image != state.image)
    if not (rule.enabled and is_new and matches(rule, signal)):
        return NothingDue()
    # Cut so that the state stays small, but left too long to fill a placeholder.
    values = {name: text[: VALUE_MAX_CHARS + 1] for name, text in signal.values.items()}
    due = DueFiring(condition=signal.kind, event_id=signal.id, at=facts.now, values=values, image=image)
    groups = [group for group in rule.groups if conditions_met(group.conditions, signal)]
    for group in groups:
        state = with_met(state, conditions_met(group.conditions, signal), due)
    if conditions_met(rule.conditions, signal):
        return _decide_due(rule, state, due, facts)
    return _decide_groups(rule, groups, state, due, facts)


def _decide_groups(
    rule: Rule, groups: Sequence[All], state: RuleState, signal: DueFiring, facts: Facts
) -> Fire | Hold:
    """The decision about the groups that remember the signal: the first that may fire, or what the first waits for."""
    what = "order" if signal.condition is ConditionKind.MANUAL else "signal"
    holds: list[Hold] = []
    for group in groups:
        due = group_due(group, state, facts.now, partial(_since, state, facts))
        if isinstance(due, DueFiring):
            due = replace(due, event_id=signal.event_id)
        decision = _decide_due(rule, state, due, facts)
        if isinstance(decision, Fire):
            return decision
        reason = f"the {what} is remembered: {decision.reason}"
        hold = _hold_back(rule, state, signal, facts.now, reason, waits=False)
        holds.append(replace(hold, is_storm=decision.is_storm))
    return holds[0]


def _due(rule: Rule, state: RuleState, facts: Facts) -> Iterator[DueFiring | Lacking]:
    """The queued firing and those that a tick finds due; signals bring the others."""
    if state.queued is not None:
        yield state.queued
    for condition in rule.conditions:
        if isinstance(condition, All):
            due = group_due(condition, state, facts.now, partial(_since, state, facts))
            if isinstance(due, DueFiring) or due.passes:
                yield due
        elif (since := _since(state, facts, condition)) is not None:
            folder = None
            if isinstance(condition, NewData) and condition.each is not None:
                folders = folders_by(state, condition)
                folder = next(one.dir_uri for one in folders if _data_due(condition, one, facts.now))
            event_id = f"{condition.kind}/{encoded_time(since)}"
            yield DueFiring(condition=condition.kind, event_id=event_id, at=facts.now, folder=folder)


def _since(state: RuleState, facts: Facts, condition: Condition) -> datetime | None:
    """Since when a condition that a tick decides is due; None if it is not. With `each`, the first folder's."""
    match condition:
        case NewData():
            counts = folders_by(state, condition) if condition.each else [counted_by(state, condition)]
            return next(filter(None, (_data_due(condition, one, facts.now) for one in counts)), None)
        case Schedule():
            named = condition.last_due(facts.now)
            return named if named is not None and named > state.scheduled_until else None
        case Age():
            return _age_due(condition, state, facts)
        case _:
            return None


def _data_due(condition: NewData, counted: MatchCount, now: datetime) -> datetime | None:
    """When the newest object arrived, if enough arrived and no more are expected."""
    if counted.newest_at is None or counted.first_at is None:
        return None
    enough = counted.count >= condition.min_objects and counted.size_bytes >= condition.min_bytes
    quiet, max_wait = (timedelta(seconds=seconds) for seconds in (condition.quiet_s, condition.max_wait_s))
    settled = now - counted.newest_at >= quiet or now - counted.first_at >= max_wait
    return counted.newest_at if enough and settled else None


def _age_due(condition: Age, state: RuleState, facts: Facts) -> datetime | None:
    """Now, if the champion is too old."""
    if facts.champion is None:
        return None
    # A run that did not beat the champion leaves it old: the next run follows after the same time again.
    since = max(facts.champion.since, state.fired_last_at or facts.champion.since)
    return facts.now if facts.now - since >= timedelta(seconds=condition.older_than_s) else None


def _decide_due(rule: Rule, state: RuleState, due: DueFiring | Lacking, facts: Facts) -> Fire | Hold:
    if isinstance(due, Lacking):
        return _hold_back(rule, state, due.due, facts.now, due.reason, waits=False)
    if stopped := _gate_closed(rule, state, due, facts):
        return stopped
    replaces = state.current_run if _is_going(state, facts) else None
    now, batch, champion = facts.now, facts.batch or batch_of(state, due.folder), facts.champion
    firing = firing_of(rule, state, due, now=now, batch=batch, champion=champion, replaces=replaces)
    values = firing.values
    if rule.keeps_objects and batch.count and facts.batch is None:
        values = {**_UNREAD, **values}  # the turn reads the objects before it fires
    if missing := why_unfilled(rule.placeholders, values):
        return _hold_back(rule, state, due, facts.now, missing, waits=False)
    return Fire(state=with_firing(state, firing, due, batch), firing=firing, folder=due.folder)


def _gate_closed(rule: Rule, state: RuleState, due: DueFiring, facts: Facts) -> Hold | None:
    """The gate that holds the firing back: the last run, the cooldown, the clock, a storm of firings, the daily cap."""
    now = facts.now
    if _is_going(state, facts) and rule.while_running is not WhileRunning.REPLACE:
        return _hold_back(rule, state, due, now, f"its run {state.current_run} is still running")
    free_at = state.fired_last_at + rule.cooldown if state.fired_last_at else now
    if now < free_at:
        return _hold_back(rule, state, due, now, f"its cooldown lasts until {encoded_time(free_at)}")
    if now < (free_at := rule.free_from(now)):
        cause = "not_before" if rule.not_before is not None and now < rule.not_before else "blackout"
        return _hold_back(rule, state, due, now, f"it is held until {encoded_time(free_at)} by its {cause}")
    # Dropping the rule again ends its quarantine: earlier firings do not count.
    if _fired_since(state, max(now - STORM_WITHIN, state.since)) >= STORM:
        reason = f"more than {STORM} firings within an hour; drop its file again to let it fire"
        return replace(_hold_back(rule, state, due, now, reason, waits=False), is_storm=True)
    if _fired_since(state, now - DAY) >= rule.max_per_day:
        often = "once" if rule.max_per_day == 1 else f"{rule.max_per_day} times"
        reason = f"it fired {often} within 24 hours, as often as max_per_day allows"
        return _hold_back(rule, state, due, now, reason)
    return None


def limits_end(
    rule: Rule, now: datetime, *, fired_last_at: datetime | None, fired_at: Sequence[datetime]
) -> datetime:
    """When the cooldown, the daily cap, `not_before` and `blackout` let the rule fire, if it does not fire before.

    `now` if they do now.

    `fired_at`: the firings of the last 24 hours, oldest first.
    """
    recent = [moment for moment in fired_at if moment > now - DAY]
    ends = [fired_last_at + rule.cooldown] if fired_last_at is not None else []
    if len(recent) >= rule.max_per_day:
        ends.append(recent[-rule.max_per_day] + DAY)
    return rule.free_from(max([now, *ends]))


def _is_going(state: RuleState, facts: Facts) -> bool:
    return state.current_run is not None and not facts.current_ended


def _fired_since(state: RuleState, moment: datetime) -> int:
    return sum(1 for fired_at in state.fired_at if fired_at > moment)


def _hold_back(
    rule: Rule, state: RuleState, due: DueFiring, now: datetime, reason: str, *, waits: bool = True
) -> Hold:
    """The state with the reason and, if the firing `waits` and the rule says so, the queued firing; else it is skipped.

    The same reason gives the same state, so that a firing that stays due is not written at every tick.
    """
    held, queued = state.held, state.queued
    if held is None or (held.condition, held.reason) != (due.condition, reason):
        held = HeldBack(condition=due.condition, reason=reason, at=now)
    is_scheduled = due.condition is ConditionKind.SCHEDULE
    until = max(now, state.scheduled_until) if is_scheduled else state.scheduled_until
    state = replace(state, held=held, scheduled_until=until)
    is_queued = queued is not None and queued.event_id == due.event_id
    if is_queued and not waits:
        state = replace(state, queued=None)
    elif waits and rule.while_running is WhileRunning.QUEUE_ONE and due.condition not in STAYS_DUE:
        state = state if is_queued else with_seen(replace(state, queued=due), due.event_id)
    return Hold(state=state, reason=reason)
