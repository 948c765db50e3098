"""What one rule remembers between events: schemas/rule_state.v1.schema.json.

Its size is bounded whatever comes: counters instead of objects, and the last so many identities as hashes.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.core.codec import decoded, encoded
from orchestrator.core.retrain.arrival import ArrivedObject, Batch
from orchestrator.core.retrain.condition import ConditionKind
from orchestrator.core.retrain.rule import Rule

DAY = timedelta(hours=24)
MAX_STATE_BYTES = 256 * 1024
"""No state is larger; a test holds the worst one against it."""
KEPT_IDENTITIES = 10_000
KEPT_BATCHES = 4_000
KEPT_SIGNALS = 100
HASH_CHARS = 8
"""48 bits: of 10,000 kept, a new object is taken for an old one once in 28 thousand million."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What matched since the last firing. `first_at` and `newest_at` are creation times of objects."""

    objects: str = ""
    count: int = 0
    size_bytes: int = 0
    first_at: datetime | None = None
    newest_at: datetime | None = None
    newest_uri: str | None = None


@dataclass(frozen=True, kw_only=True)
class Firing:
    """One decision to start a run. The same firing always has the same `run_id`.

    Attributes:
        number: counts the rule's firings from 1.
        generation: of the rule that fired.
        event_id: what fired it: a signal's id, or `<condition>/<time>` for what a tick found due.
        values: what fills the request's places, by name.
        replaces: the run to cancel first.
    """

    number: int
    run_id: str
    condition: ConditionKind
    at: datetime
    generation: int
    event_id: str
    values: Mapping[str, str]
    replaces: str | None = None


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A firing that waits for its turn; a newer one takes its place."""

    condition: ConditionKind
    event_id: str
    at: datetime
    values: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    """Why the last firing that was due did not happen."""

    condition: ConditionKind
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Fired:
    """The last firing whose run was launched."""

    number: int
    run_id: str
    condition: ConditionKind
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RuleState:
    """Everything that a decision about the rule needs, beside the rule itself and the time.

    Attributes:
        generation: of the rule that this state was last used with.
        since: when that generation was first seen; what was due before is nothing to it.
        number: how many firings there were.
        firing: decided and perhaps not yet launched; whoever finds it launches it, with the same run id.
        current_run: the run that was launched last; whether it still goes, its record says.
        fired_at: the firings of the last 24 hours, oldest first.
        data: one counter for each different pattern of the rule's new_data conditions.
        arrived: what matched any of them; fills the `data.*` places.
        scheduled_until: every scheduled time up to here was taken care of.
        aged_at: when the age condition last fired.
        signals, batches, identities: hashes of what was seen last, oldest first, HASH_CHARS each.
        tripped_at: when the breaker tripped; the rule is silent until its file is dropped again.
    """

    schema: str = "rule_state.v1"
    rule_id: str
    generation: int
    since: datetime
    scheduled_until: datetime
    number: int = 0
    firing: Firing | None = None
    queued: Queued | None = None
    current_run: str | None = None
    fired_at: tuple[datetime, ...] = ()
    data: tuple[Counted, ...] = ()
    arrived: Counted | None = None
    aged_at: datetime | None = None
    signals: str = ""
    batches: str = ""
    identities: str = ""
    tripped_at: datetime | None = None
    held: HeldBack | None = None
    last: Fired | None = None

    @property
    def document(self) -> dict[str, object]:
        document = encoded(self)
        assert isinstance(document, dict)  # noqa: S101  # what `encoded` makes of a dataclass
        return document


def state_in(document: object) -> RuleState:
    """The state that `RuleState.document` wrote.

    Raises:
        ValueError: the document holds no state; the message names the place.
    """
    return decoded(RuleState, document)


def state_for(rule: Rule, state: RuleState | None, now: datetime) -> RuleState:
    """The state to use with this generation of the rule: the one found, a fresh one, or one carried over.

    A newer generation begins its schedule anew and closes the breaker. It keeps the firings of the last day,
    the run that is going, and what was counted for patterns that it still has. The same state comes back
    when there is nothing to change.
    """
    if state is None:
        return RuleState(rule_id=rule.rule_id, generation=rule.generation, since=now, scheduled_until=now)
    if state.generation >= rule.generation:
        return state
    patterns = {condition.pattern for condition in rule.new_data}
    data = tuple(counted for counted in state.data if counted.objects in patterns)
    return replace(
        state,
        generation=rule.generation,
        since=now,
        scheduled_until=now,
        queued=None,
        data=data,
        arrived=state.arrived if data else None,
        aged_at=None,
        tripped_at=None,
        held=None,
    )


def folded(state: RuleState, rule: Rule, batches: Sequence[Batch]) -> RuleState:
    """The state with the batches' matching objects counted, each once, in whatever order they come.

    An object is known by bucket, name and generation, a batch by its name; the last KEPT_IDENTITIES objects
    and KEPT_BATCHES batches are remembered. The same state comes back when nothing matched.
    """
    raise NotImplementedError


def launched(state: RuleState) -> RuleState:
    """The state after the run of its firing was launched. Safe to repeat."""
    firing = state.firing
    if firing is None:
        return state
    last = Fired(number=firing.number, run_id=firing.run_id, condition=firing.condition, at=firing.at)
    return replace(state, firing=None, current_run=firing.run_id, last=last)


def given_up(state: RuleState, reason: str, now: datetime) -> RuleState:
    """The state after its firing could not be launched for good, for example because its template is gone."""
    firing = state.firing
    if firing is None:
        return state
    held = HeldBack(condition=firing.condition, reason=reason, at=now)
    return replace(state, firing=None, held=held)
