"""Whether a rule fires now.

A decision carries the state to write; only after that write succeeded under its precondition is a run launched:

    state with `firing`   written; a crash here leaves it, and every later decision is this firing again
    launch                idempotent by the firing's run id
    `launched(state)`     written; the rule is free again

What is due passes these gates, in this order: the rule's last run (`while_running`), the cooldown, the breaker,
the daily cap, and values for every place. With `queue_one`, what a gate before the last holds back waits and
fires when they let it; otherwise scheduled times and signals that are held back are passed over. Data and age
are never lost: they stay due.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.retraining.firing import (
    STAYS_DUE,
    ChampionFacts,
    Due,
    firing_of,
    with_firing,
)
from trainmaster.orchestrator.core.retraining.rules.condition import Age, ConditionKind, NewData, Schedule
from trainmaster.orchestrator.core.retraining.rules.filling import VALUE_MAX_CHARS, unfilled
from trainmaster.orchestrator.core.retraining.rules.rule import Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.rules.schedule import last_due
from trainmaster.orchestrator.core.retraining.signals.signal import Signal, heeds
from trainmaster.orchestrator.core.retraining.state import (
    DAY,
    Counted,
    Firing,
    HeldBack,
    Queued,
    RuleState,
    has_seen,
    with_seen,
)

__all__ = [
    "STORM",
    "STORM_WITHIN",
    "ChampionFacts",
    "Decision",
    "Fire",
    "Hold",
    "Nothing",
    "Trip",
    "decide_on_signal",
    "decide_on_tick",
]

STORM = 60
STORM_WITHIN = timedelta(hours=1)
"""More firings of one rule than STORM within this time trip its breaker."""


@dataclass(frozen=True, kw_only=True)
class Fire:
    """Write `state`, then launch its `firing`.

    `again`: the firing was decided earlier and never finished, and nothing else was decided now: launch it,
    write `launched(state)`, and ask again, or the signal at hand is lost. Its state is on record already.
    """

    state: RuleState
    firing: Firing
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Something was due and is held back. Write `state` where it differs from the one read."""

    state: RuleState
    reason: str


@dataclass(frozen=True, kw_only=True)
class Trip:
    """The breaker trips. Write `state`, then tell it: notice, status, ERROR line."""

    state: RuleState
    reason: str


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """Nothing is due, and `reason` says why where that is not plain."""

    reason: str = ""


Decision = Fire | Hold | Trip | Nothing


@dataclass(frozen=True, kw_only=True)
class _Moment:
    """The world around a decision."""

    now: datetime
    champion: ChampionFacts | None
    current_ended: bool


def decide_on_tick(
    rule: Rule,
    state: RuleState,
    *,
    now: datetime,
    champion: ChampionFacts | None,
    current_ended: bool,
) -> Decision:
    """What the rule does at this tick, by its data, its schedules, its age, and what is queued.

    Of several things that are due the first that can fire does, for all of them.
    The state is as `state_for` gives it, with all arrivals folded; the champion is that of `rule.model_name`;
    `current_ended` says whether the run `state.current_run` has ended, and is True where there is none.
    """
    silent = _silent(rule, state)
    if silent is not None:
        return silent
    moment = _Moment(now=now, champion=champion, current_ended=current_ended)
    held: Hold | None = None
    for due in _due(rule, state, moment):
        decision = _decided(rule, held.state if held else state, due, moment)
        if not isinstance(decision, Hold):
            return decision
        held = decision if held is None else replace(held, state=_both(held.state, decision.state))
    return held or Nothing()


def decide_on_signal(
    rule: Rule,
    state: RuleState,
    signal: Signal,
    *,
    now: datetime,
    champion: ChampionFacts | None,
    current_ended: bool,
) -> Decision:
    """What the rule does about this signal; one that fired or was queued is Nothing the second time."""
    if not heeds(rule, signal):
        return Nothing(reason="no condition of the rule is about it")
    silent = _silent(rule, state)
    if silent is not None:
        return silent
    if has_seen(state, signal.id):
        return Nothing(reason="the rule has seen it")
    image = signal.facts.get("digest") if signal.kind is ConditionKind.NEW_IMAGE else None
    if image is not None and image == state.image:
        return Nothing(reason="the rule's last firing by an image was by this one")
    # Cut so that the state stays small, and still too long to fill a place.
    values = {name: text[: VALUE_MAX_CHARS + 1] for name, text in signal.values.items()}
    due = Due(condition=signal.kind, event_id=signal.id, values=values, image=image)
    return _decided(rule, state, due, _Moment(now=now, champion=champion, current_ended=current_ended))


def _silent(rule: Rule, state: RuleState) -> Fire | Nothing | None:
    """What stands before every decision: a firing to finish, or a rule that does not fire."""
    if state.firing is not None:
        return Fire(state=state, firing=state.firing, again=True)
    if state.tripped_at is not None:
        return Nothing(reason="the breaker tripped; drop the rule again")
    if not rule.enabled:
        return Nothing(reason="the rule is disabled")
    return None


def _due(rule: Rule, state: RuleState, moment: _Moment) -> Iterator[Due]:
    queued = state.queued
    if queued is not None:
        yield Due(
            condition=queued.condition, event_id=queued.event_id, values=queued.values, image=queued.image
        )
    counters = {counted.objects: counted for counted in state.data}
    for condition in rule.conditions:
        match condition:
            case NewData():
                yield from _data_due(condition, counters.get(condition.pattern), moment.now)
            case Schedule():
                at = last_due(condition, moment.now)
                if at is not None and at > state.scheduled_until:
                    yield Due(condition=condition.kind, event_id=f"{condition.kind}/{encoded_time(at)}")
            case Age():
                yield from _age_due(condition, state, moment)
            case _:
                pass  # signals tell of these


def _data_due(condition: NewData, counted: Counted | None, now: datetime) -> Iterator[Due]:
    if counted is None or counted.newest_at is None or counted.first_at is None:
        return
    enough = counted.count >= condition.min_objects and counted.size_bytes >= condition.min_bytes
    settled = now - counted.newest_at >= condition.quiet or now - counted.first_at >= condition.max_wait
    if enough and settled:
        yield Due(condition=condition.kind, event_id=f"{condition.kind}/{encoded_time(counted.newest_at)}")


def _age_due(condition: Age, state: RuleState, moment: _Moment) -> Iterator[Due]:
    if moment.champion is None:
        return
    # A run that did not beat the champion leaves it old: the next one comes after the same time again.
    since = max(moment.champion.since, state.fired_last_at or moment.champion.since)
    if moment.now - since >= condition.older_than:
        yield Due(condition=condition.kind, event_id=f"{condition.kind}/{encoded_time(moment.now)}")


def _decided(rule: Rule, state: RuleState, due: Due, moment: _Moment) -> Fire | Hold | Trip:
    now = moment.now
    stopped = _stopped(rule, state, due, moment)
    if stopped is not None:
        return stopped
    replaces = state.current_run if _is_going(state, moment) else None
    firing = firing_of(rule, state, due, now=now, champion=moment.champion, replaces=replaces)
    missing = unfilled(rule.places, firing.values)
    if missing is not None:
        return Hold(state=_passed_over(state, due, now, missing.reason), reason=missing.reason)
    return Fire(state=with_firing(state, firing, due), firing=firing)


def _stopped(rule: Rule, state: RuleState, due: Due, moment: _Moment) -> Hold | Trip | None:
    """The gate that holds the firing back: the last run, the cooldown, the breaker, the daily cap."""
    now = moment.now
    if _is_going(state, moment) and rule.while_running is not WhileRunning.REPLACE:
        return _held(rule, state, due, now, f"its run {state.current_run} is still going")
    free_at = state.fired_last_at + rule.cooldown if state.fired_last_at else now
    if now < free_at:
        return _held(rule, state, due, now, f"it cools down until {encoded_time(free_at)}")
    # Dropping the rule again closes the breaker: what fired before does not count for it.
    if _fired_since(state, max(now - STORM_WITHIN, state.since)) >= STORM:
        return _tripped(state, due, now)
    if _fired_since(state, now - DAY) >= rule.max_per_day:
        reason = f"it fired {rule.max_per_day} times within 24 hours, as often as max_per_day allows"
        return _held(rule, state, due, now, reason)
    return None


def _is_going(state: RuleState, moment: _Moment) -> bool:
    return state.current_run is not None and not moment.current_ended


def _fired_since(state: RuleState, moment: datetime) -> int:
    return sum(1 for at in state.fired_at if at > moment)


def _held(rule: Rule, state: RuleState, due: Due, now: datetime, reason: str) -> Hold:
    held = _passed_over(state, due, now, reason, drop_queued=False)
    if (
        rule.while_running is WhileRunning.QUEUE_ONE
        and due.condition not in STAYS_DUE
        and (state.queued is None or state.queued.event_id != due.event_id)
    ):
        queued = Queued(
            condition=due.condition, event_id=due.event_id, at=now, values=due.values, image=due.image
        )
        held = with_seen(replace(held, queued=queued), due.event_id)
    return Hold(state=held, reason=reason)


def _passed_over(
    state: RuleState, due: Due, now: datetime, reason: str, *, drop_queued: bool = True
) -> RuleState:
    """The state after what was due is told of and no longer due, where it can be.

    The same reason twice is the same state, so that what stays due is not written at every tick.
    """
    held = state.held
    if held is None or (held.condition, held.reason) != (due.condition, reason):
        held = HeldBack(condition=due.condition, reason=reason, at=now)
    dropped = drop_queued and state.queued is not None and state.queued.event_id == due.event_id
    return replace(
        state,
        held=held,
        queued=None if dropped else state.queued,
        scheduled_until=max(now, state.scheduled_until)
        if due.condition is ConditionKind.SCHEDULE
        else state.scheduled_until,
    )


def _both(first: RuleState, later: RuleState) -> RuleState:
    """The later state, which has seen everything, with what the first thing that was due was told."""
    return replace(later, held=first.held)


def _tripped(state: RuleState, due: Due, now: datetime) -> Trip:
    reason = (
        f"more than {STORM} firings within an hour: the breaker tripped, and the rule is silent "
        "until its file is dropped again"
    )
    held = HeldBack(condition=due.condition, reason=reason, at=now)
    return Trip(state=replace(state, tripped_at=now, queued=None, held=held), reason=reason)
