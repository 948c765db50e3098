"""Whether a rule fires now.

A decision carries the state to write; only after that write succeeded under its precondition is a run launched:

    state with `firing`   written; a crash here leaves it, and it is launched before anything else is decided
    launch                idempotent by the firing's run id
    `launched(state)`     written; the rule is free again

What is due passes these gates, in this order: the rule's last run (`while_running`), the cooldown, the breaker,
the daily cap, and values for every placeholder. With `queue_one`, what a gate before the last holds back waits and
fires when they let it; otherwise scheduled times and signals that are held back are passed over. Data and age
are never lost: they stay due.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.retraining.condition import Age, ConditionKind, NewData, Schedule
from trainmaster.orchestrator.core.retraining.filling import VALUE_MAX_CHARS, unfilled
from trainmaster.orchestrator.core.retraining.firing import STAYS_DUE, firing_of, with_firing
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts, Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.signals import Signal, matches
from trainmaster.orchestrator.core.retraining.state import (
    DAY,
    DueFiring,
    Firing,
    HeldBack,
    MatchCount,
    RuleState,
    has_seen,
    with_seen,
)

STORM = 60
STORM_WITHIN = timedelta(hours=1)
"""More firings of one rule than STORM within this time trip its breaker."""


@dataclass(frozen=True, kw_only=True)
class Fire:
    """Write `state`, then launch its `firing`."""

    state: RuleState
    firing: Firing


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Something was due and is held back. Write `state` where it differs from the one read."""

    state: RuleState
    reason: str


@dataclass(frozen=True, kw_only=True)
class BreakerTripped:
    """The breaker trips. Write `state`, then tell it: notice, status, ERROR line."""

    state: RuleState
    reason: str


@dataclass(frozen=True, kw_only=True)
class NothingDue:
    """Nothing is due, and `reason` says why where that is not plain."""

    reason: str = ""


Decision = Fire | Hold | BreakerTripped | NothingDue


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a decision must know beside the rule and its state.

    Attributes:
        champion: that of `rule.model_name`.
        current_ended: whether the run `state.current_run` has ended; True where there is none.
    """

    now: datetime
    champion: ChampionFacts | None = None
    current_ended: bool = True


def decide_on_tick(rule: Rule, state: RuleState, facts: Facts) -> Decision:
    """What the rule does at this tick, by its data, its schedules, its age, and what is queued.

    Of several things that are due the first that can fire does, for all of them.
    The state is as `state_for` gives it, with all arrivals folded and no firing left to launch.
    """
    silent = _silent(rule, state)
    if silent is not None:
        return silent
    held: Hold | None = None
    for due in _due(rule, state, facts):
        decision = _decided(rule, held.state if held else state, due, facts)
        if not isinstance(decision, Hold):
            return decision
        # The later state has seen everything; the user is told of the first thing that was due.
        held = replace(held, state=replace(decision.state, held=held.state.held)) if held else decision
    return held or NothingDue()


def decide_on_signal(rule: Rule, signal: Signal, state: RuleState, facts: Facts) -> Decision:
    """What the rule does about this signal; one that fired or was queued is Nothing the second time."""
    if not matches(rule, signal):
        return NothingDue(reason="no condition of the rule matches it")
    silent = _silent(rule, state)
    if silent is not None:
        return silent
    if has_seen(state, signal.id):
        return NothingDue(reason="the rule has already seen it")
    image = signal.facts.get("digest") if signal.kind is ConditionKind.NEW_IMAGE else None
    if image is not None and image == state.image:
        return NothingDue(reason="this image already caused the rule's last firing")
    # Cut so that the state stays small, and still too long to fill a placeholder.
    values = {name: text[: VALUE_MAX_CHARS + 1] for name, text in signal.values.items()}
    due = DueFiring(condition=signal.kind, event_id=signal.id, at=facts.now, values=values, image=image)
    return _decided(rule, state, due, facts)


def _silent(rule: Rule, state: RuleState) -> NothingDue | None:
    """Why the rule does not fire at all."""
    if state.tripped_at is not None:
        return NothingDue(reason="the circuit breaker tripped; drop the rule again to reset it")
    if not rule.enabled:
        return NothingDue(reason="the rule is disabled")
    return None


def _due(rule: Rule, state: RuleState, facts: Facts) -> Iterator[DueFiring]:
    """What is queued, and what is due by itself: signals tell of the rest."""
    if state.queued is not None:
        yield state.queued
    counters = {counted.objects: counted for counted in state.data}
    for condition in rule.conditions:
        match condition:
            case NewData():
                at = _data_due(condition, counters.get(condition.pattern), facts.now)
            case Schedule():
                named = condition.last_due(facts.now)
                at = named if named is not None and named > state.scheduled_until else None
            case Age():
                at = _age_due(condition, state, facts)
            case _:
                at = None
        if at is not None:
            event_id = f"{condition.kind}/{encoded_time(at)}"
            yield DueFiring(condition=condition.kind, event_id=event_id, at=facts.now)


def _data_due(condition: NewData, counted: MatchCount | None, now: datetime) -> datetime | None:
    """When the newest object came, where enough came and has settled."""
    if counted is None or counted.newest_at is None or counted.first_at is None:
        return None
    enough = counted.count >= condition.min_objects and counted.size_bytes >= condition.min_bytes
    quiet, max_wait = (timedelta(seconds=each) for each in (condition.quiet_s, condition.max_wait_s))
    settled = now - counted.newest_at >= quiet or now - counted.first_at >= max_wait
    return counted.newest_at if enough and settled else None


def _age_due(condition: Age, state: RuleState, facts: Facts) -> datetime | None:
    """Now, where the champion is too old."""
    if facts.champion is None:
        return None
    # A run that did not beat the champion leaves it old: the next one comes after the same time again.
    since = max(facts.champion.since, state.fired_last_at or facts.champion.since)
    return facts.now if facts.now - since >= timedelta(seconds=condition.older_than_s) else None


def _decided(rule: Rule, state: RuleState, due: DueFiring, facts: Facts) -> Fire | Hold | BreakerTripped:
    stopped = _stopped(rule, state, due, facts)
    if stopped is not None:
        return stopped
    replaces = state.current_run if _is_going(state, facts) else None
    firing = firing_of(rule, state, due, now=facts.now, champion=facts.champion, replaces=replaces)
    if missing := unfilled(rule.placeholders, firing.values):
        return _held(rule, state, due, facts.now, missing, waits=False)
    return Fire(state=with_firing(state, firing, due), firing=firing)


def _stopped(rule: Rule, state: RuleState, due: DueFiring, facts: Facts) -> Hold | BreakerTripped | None:
    """The gate that holds the firing back: the last run, the cooldown, the breaker, the daily cap."""
    now = facts.now
    if _is_going(state, facts) and rule.while_running is not WhileRunning.REPLACE:
        return _held(rule, state, due, now, f"its run {state.current_run} is still running")
    free_at = state.fired_last_at + rule.cooldown if state.fired_last_at else now
    if now < free_at:
        return _held(rule, state, due, now, f"its cooldown lasts until {encoded_time(free_at)}")
    # Dropping the rule again closes the breaker: what fired before does not count for it.
    if _fired_since(state, max(now - STORM_WITHIN, state.since)) >= STORM:
        return _tripped(state, due, now)
    if _fired_since(state, now - DAY) >= rule.max_per_day:
        reason = f"it fired {rule.max_per_day} times within 24 hours, as often as max_per_day allows"
        return _held(rule, state, due, now, reason)
    return None


def _is_going(state: RuleState, facts: Facts) -> bool:
    return state.current_run is not None and not facts.current_ended


def _fired_since(state: RuleState, moment: datetime) -> int:
    return sum(1 for at in state.fired_at if at > moment)


def _held(
    rule: Rule, state: RuleState, due: DueFiring, now: datetime, reason: str, *, waits: bool = True
) -> Hold:
    """What was due is told of, and queued if it `waits` and the rule says so; else it is passed over, if it can be.

    The same reason twice is the same state, so that what stays due is not written at every tick.
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


def _tripped(state: RuleState, due: DueFiring, now: datetime) -> BreakerTripped:
    reason = (
        f"more than {STORM} firings within an hour: the circuit breaker tripped, and the rule will not fire "
        "until its file is dropped again"
    )
    held = HeldBack(condition=due.condition, reason=reason, at=now)
    return BreakerTripped(state=replace(state, tripped_at=now, queued=None, held=held), reason=reason)
