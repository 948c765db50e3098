"""What one rule remembers between events, and what its user is told of it.

schemas/rule_state.v1.schema.json, schemas/rule_status.v1.schema.json

Its size is bounded whatever comes: counters instead of objects, and the last so many identities as hashes.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, Batch
from trainmaster.orchestrator.core.retraining.condition import ConditionKind
from trainmaster.orchestrator.core.retraining.rule import Rule

DAY = timedelta(hours=24)
MAX_STATE_BYTES = 256 * 1024
"""No state is larger; a test holds the worst one against it."""
KEPT_IDENTITIES = 10_000
KEPT_BATCHES = 4_000
KEPT_SIGNALS = 100
HASH_CHARS = 8
"""48 bits: of 10,000 kept, a new object is taken for an old one once in 28 thousand million."""


@dataclass(frozen=True, kw_only=True)
class MatchCount:
    """What matched since the last firing. `first_at` and `newest_at` are creation times of objects."""

    objects: str = ""
    count: int = 0
    size_bytes: int = 0
    first_at: datetime | None = None
    newest_at: datetime | None = None
    newest_uri: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fired:
    """A firing whose run was launched; `number` counts the rule's firings from 1."""

    number: int
    run_id: str
    condition: ConditionKind
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Firing(Fired):
    """One decision to start a run. The same firing always has the same `run_id`.

    Attributes:
        generation: of the rule that fired.
        event_id: what fired it: a signal's id, or `<condition>/<time>` for what a tick found due.
        values: what fills the request's placeholders, by name.
        replaces: the run to cancel first.
    """

    generation: int
    event_id: str
    values: Mapping[str, str]
    replaces: str | None = None


@dataclass(frozen=True, kw_only=True)
class DueFiring:
    """What asks for a firing since `at`. `values` are the event's own; `image` is the digest, where one asks."""

    condition: ConditionKind
    event_id: str
    at: datetime
    values: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    """Why the last firing that was due did not happen."""

    condition: ConditionKind
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RuleState:
    """Everything that a decision about the rule needs, beside the rule itself and the time.

    Attributes:
        generation: of the rule that this state was last used with.
        since: when that generation was first seen; what was due before is nothing to it.
        number: how many firings there were.
        firing: decided and perhaps not yet launched; whoever finds it launches it, with the same run id.
        queued: waits for its turn; a newer one takes its place.
        current_run: the run that was launched last; whether it still goes, its record says.
        fired_at: the firings of the last 24 hours, oldest first.
        data: one counter for each different pattern of the rule's new_data conditions.
        arrived: what matched any of them; fills the `data.*` placeholders.
        scheduled_until: every scheduled time up to here was taken care of.
        fired_last_at: the last firing, however long ago.
        image: the digest that the last firing by an image had; pushed again, it fires nothing.
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
    queued: DueFiring | None = None
    current_run: str | None = None
    fired_at: tuple[datetime, ...] = ()
    data: tuple[MatchCount, ...] = ()
    arrived: MatchCount | None = None
    fired_last_at: datetime | None = None
    signals: str = ""
    batches: str = ""
    identities: str = ""
    image: str | None = None
    tripped_at: datetime | None = None
    held: HeldBack | None = None
    last: Fired | None = None


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
        tripped_at=None,
        held=None,
    )


def folded(state: RuleState, rule: Rule, batches: Sequence[Batch]) -> RuleState:
    """The state with the batches' matching objects counted, each once, in whatever order they come.

    An object is known by bucket, name and generation, a batch by its name; the last KEPT_IDENTITIES objects
    and KEPT_BATCHES batches are remembered. A name that ends in `/` stands for a folder and is no data.
    The same state comes back when nothing matched.
    """
    known = _hashes(state.batches)
    fresh = {digest: batch for batch in batches if (digest := _hash(batch.name)) not in known}
    matched = _matched(state, rule, fresh.values())
    if not matched:
        return state
    counters = {counted.objects: counted for counted in state.data}
    for condition in rule.new_data:
        counted = counters.get(condition.pattern, MatchCount(objects=condition.pattern))
        taken = [arrived for arrived in matched.values() if condition.takes(arrived.uri)]
        counters[condition.pattern] = _with(counted, taken)
    return replace(
        state,
        data=tuple(counters[pattern] for pattern in sorted(counters)),
        arrived=_with(state.arrived or MatchCount(), list(matched.values())),
        batches=_kept(state.batches, fresh, KEPT_BATCHES),
        identities=_kept(state.identities, matched, KEPT_IDENTITIES),
    )


def _matched(state: RuleState, rule: Rule, batches: Iterable[Batch]) -> dict[str, ArrivedObject]:
    """The objects that the rule watches and that were not counted yet, by the hash of their identity."""
    known = _hashes(state.identities)
    watched = (
        arrived
        for batch in batches
        for arrived in batch.arrivals
        if not arrived.name.endswith("/") and any(each.takes(arrived.uri) for each in rule.new_data)
    )
    return {digest: arrived for arrived in watched if (digest := _hash(arrived.identity)) not in known}


def _with(counted: MatchCount, arrivals: Sequence[ArrivedObject]) -> MatchCount:
    if not arrivals:
        return counted
    times = [arrived.created_at for arrived in arrivals]
    newest = max((arrived.created_at, arrived.uri) for arrived in arrivals)
    if counted.newest_at is not None and counted.newest_uri is not None:
        newest = max(newest, (counted.newest_at, counted.newest_uri))
    return replace(
        counted,
        count=counted.count + len(arrivals),
        size_bytes=counted.size_bytes + sum(arrived.size_bytes for arrived in arrivals),
        first_at=min(times if counted.first_at is None else [*times, counted.first_at]),
        newest_at=newest[0],
        newest_uri=newest[1],
    )


def has_seen(state: RuleState, signal_id: str) -> bool:
    """Whether a signal of this id fired or was queued before, as far as KEPT_SIGNALS go back."""
    return _hash(signal_id) in _hashes(state.signals)


def with_seen(state: RuleState, signal_id: str) -> RuleState:
    return replace(state, signals=_kept(state.signals, [_hash(signal_id)], KEPT_SIGNALS))


def _hash(text: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6]).decode()


def _hashes(packed: str) -> set[str]:
    return {packed[start : start + HASH_CHARS] for start in range(0, len(packed), HASH_CHARS)}


def _kept(packed: str, new: Iterable[str], most: int) -> str:
    return (packed + "".join(new))[-most * HASH_CHARS :]


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


def why_held(state: RuleState | None) -> str | None:
    """Why the rule did not fire by the order that it has just decided on; None where it fired."""
    held = state.held if state is not None else None
    if state is None or held is None or (held.condition is not ConditionKind.MANUAL and not state.tripped_at):
        return None
    waits = state.queued is not None and state.queued.condition is ConditionKind.MANUAL
    return f"{held.reason}; it fires when that is over" if waits else held.reason


class RuleStanding(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    RETRYING = "retrying"
    DISABLED = "disabled"
    TRIPPED = "tripped"
    RETIRED = "retired"


@dataclass(frozen=True, kw_only=True)
class RuleStatus:
    """Where the latest drop of a rule's file stands.

    Attributes:
        report_uri: why it was refused.
        in_force: the generation that goes on deciding while a newer one is refused; None when none does.
        firings: how many there were.
        reason: in plain words, why it is in this standing.
        problems: of a refused rule its first faults, and how many more there are; None where there is none.
    """

    schema: str = "rule_status.v1"
    dropped_name: str
    generation: int
    state: RuleStanding
    updated_at: datetime
    rule_id: str | None = None
    report_uri: str | None = None
    in_force: int | None = None
    firings: int | None = None
    last_firing: Fired | None = None
    held: HeldBack | None = None
    reason: str | None = None
    problems: tuple[str, ...] | None = None


def status_of(rule: Rule, state: RuleState | None, now: datetime) -> RuleStatus:
    """The status of an accepted rule."""
    if state is not None and state.tripped_at is not None and state.generation >= rule.generation:
        standing = RuleStanding.TRIPPED
    else:
        standing = RuleStanding.ACCEPTED if rule.enabled else RuleStanding.DISABLED
    return RuleStatus(
        dropped_name=rule.dropped_name,
        generation=rule.generation,
        state=standing,
        updated_at=now,
        rule_id=rule.rule_id,
        in_force=rule.generation if standing is RuleStanding.ACCEPTED else None,
        firings=state.number if state else 0,
        last_firing=state.last if state else None,
        held=state.held if state else None,
    )
