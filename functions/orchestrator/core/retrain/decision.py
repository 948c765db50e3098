"""Whether a rule fires now.

A decision carries the state to write; only after that write succeeded under its precondition is a run launched:

    state with `firing`   written; a crash here leaves it, and every later decision is this firing again
    launch                idempotent by the firing's run id
    `launched(state)`     written; the rule is free again
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.core.retrain.rule import Rule
from orchestrator.core.retrain.signal import Signal
from orchestrator.core.retrain.state import Firing, RuleState

STORM = 60
STORM_WITHIN = timedelta(hours=1)
"""More firings of one rule than STORM within this time trip its breaker."""


@dataclass(frozen=True, kw_only=True)
class ChampionFacts:
    """The champion of the rule's model, as far as rules are about it. `since`: when it was promoted."""

    run_id: str
    model_uri: str
    value: float
    since: datetime


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
    """Nothing is due."""

    reason: str = ""


Decision = Fire | Hold | Trip | Nothing


def decide_on_tick(
    rule: Rule,
    state: RuleState,
    *,
    now: datetime,
    champion: ChampionFacts | None,
    current_ended: bool,
) -> Decision:
    """What the rule does at this tick, by its data, its schedules, its age, and what is queued.

    Args:
        state: as `state_for` gives it, with all arrivals folded.
        champion: of `rule.model_name`.
        current_ended: whether the run `state.current_run` has ended; True where there is none.
    """
    raise NotImplementedError


def decide_on_signal(
    rule: Rule,
    state: RuleState,
    signal: Signal,
    *,
    now: datetime,
    champion: ChampionFacts | None,
    current_ended: bool,
) -> Decision:
    """What the rule does about this signal; the same signal a second time is Nothing."""
    raise NotImplementedError
