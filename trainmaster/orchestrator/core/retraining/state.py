"""The memory of one rule between events, and the status that its user sees.

schemas/rule_state.v1.schema.json, schemas/rule_status.v1.schema.json

Its size is bounded: counters of folders and the newest objects, and only the latest identities, as hashes.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.condition import Condition
from trainmaster.orchestrator.core.retraining.rule import Rule

DAY = timedelta(hours=24)
KEPT_IDENTITIES = 20_000
"""Hashes: two of each object with a checksum."""
KEPT_BATCHES = 4_000
KEPT_SIGNALS = 100
KEPT_MET = 10
HASH_CHARS = 8
"""48 bits: with 10,000 kept, a new object is mistaken for an old one once in 28 billion."""


@dataclass(frozen=True, kw_only=True)
class MatchCount:
    """Objects that arrived. `first_at` and `newest_at` are their creation times; None without any."""

    count: int = 0
    size_bytes: int = 0
    first_at: datetime | None = None
    newest_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class WaitingFolder(MatchCount):
    """The objects of a folder that wait for a firing, and that the same conditions take.

    Attributes:
        dir_uri: the folder, `gs://…/`.
        takers: the conditions, as places in `RuleState.watched`.
        others: it counts objects of further folders too, for whose names the state has no room.
    """

    dir_uri: str
    takers: tuple[int, ...]
    others: bool = False


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
        generation: the rule's.
        event_id: what fired it: a signal's id, or `<condition>/<time>` for a condition that a tick found due.
        values: the values of the request's placeholders, by name.
        replaces: the run to cancel first.
    """

    generation: int
    event_id: str
    values: Mapping[str, str]
    replaces: str | None = None


@dataclass(frozen=True, kw_only=True)
class DueFiring:
    """A firing that is due since `at`. `values` are the event's; `image` is the digest if an image caused it.

    `folder`: it takes the data of this folder alone.
    """

    condition: ConditionKind
    event_id: str
    at: datetime
    values: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    folder: str | None = None


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    """Why the last firing that was due did not happen."""

    condition: ConditionKind
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RuleState:
    """Everything that a decision about the rule needs, besides the rule itself and the time.

    Attributes:
        generation: the rule's generation with which this state was last used.
        since: when that generation was first seen; anything due earlier is ignored.
        number: the number of firings so far.
        firing: decided and perhaps not launched; the process that finds it launches it, with the same run id.
        queued: the firing that waits; a newer one replaces it.
        current_run: the run that was launched last; its record says whether it is active.
        fired_at: the firings of the last 24 hours, oldest first.
        watched: what each of the rule's new_data conditions matches.
        waiting: the objects that arrived since the last firing, by folder, in order of their first arrival.
        newest: the newest of them, newest first.
        chunks: where the ledger has all of them by name, oldest first, for a rule that `keeps_objects`.
        watermark: the creation time of the newest object of the last firing that took any.
        scheduled_until: every scheduled time up to this one was handled.
        fired_last_at: the time of the last firing, at any age.
        image: the digest of the last firing by an image; pushing it again does not fire.
        met: the signals that came since the last firing for conditions inside `all`, by `met_key`.
        signals, batches, identities: hashes of the latest ones seen, oldest first, HASH_CHARS each.
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
    watched: tuple[str, ...] = ()
    waiting: tuple[WaitingFolder, ...] = ()
    newest: tuple[ArrivedObject, ...] = ()
    chunks: tuple[str, ...] = ()
    watermark: datetime | None = None
    fired_last_at: datetime | None = None
    signals: str = ""
    batches: str = ""
    identities: str = ""
    image: str | None = None
    met: Mapping[str, DueFiring] = field(default_factory=dict)
    held: HeldBack | None = None
    last: Fired | None = None


def state_for(rule: Rule, state: RuleState | None, now: datetime) -> RuleState:
    """The state to use with this generation of the rule: the given one, a new one, or one carried over.

    A newer generation restarts its schedule. It keeps the firings of the last day, the current
    run, and the counts and signals of conditions that it still has. Returns the same state if nothing changes.
    """
    watched = tuple(condition.watched for condition in rule.new_data)
    if state is None:
        return RuleState(
            rule_id=rule.rule_id, generation=rule.generation, since=now, scheduled_until=now, watched=watched
        )
    if state.generation >= rule.generation:
        return state
    keys = set(map(met_key, rule.members))
    places = {place: watched.index(text) for place, text in enumerate(state.watched) if text in watched}
    still = (
        replace(folder, takers=takers)
        for folder in state.waiting
        if (takers := tuple(sorted({places[place] for place in folder.takers if place in places})))
    )
    return replace(
        state,
        generation=rule.generation,
        since=now,
        scheduled_until=now,
        queued=None,
        watched=watched,
        waiting=tuple(still),
        newest=tuple(found for found in state.newest if any(one.takes(found.uri) for one in rule.new_data)),
        met={key: due for key, due in state.met.items() if key in keys},
        held=None,
    )


def has_seen(state: RuleState, signal_id: str) -> bool:
    """Whether a signal with this id already fired or was queued, among the last KEPT_SIGNALS."""
    return short_hash(signal_id) in unpacked(state.signals)


def with_seen(state: RuleState, signal_id: str) -> RuleState:
    return replace(state, signals=with_latest(state.signals, [short_hash(signal_id)], KEPT_SIGNALS))


def met_key(condition: Condition) -> str:
    return short_hash(str(condition))


def with_met(state: RuleState, conditions: Iterable[Condition], due: DueFiring) -> RuleState:
    """The state with a signal for these conditions; the last KEPT_MET are remembered."""
    met = {**state.met, **{met_key(condition): due for condition in conditions}}
    return replace(with_seen(state, due.event_id), met=dict(list(met.items())[-KEPT_MET:]))


def short_hash(text: str) -> str:
    """HASH_CHARS characters."""
    return urlsafe_b64encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6]).decode()


def unpacked(packed: str) -> dict[str, None]:
    """The hashes in a packed list, oldest first."""
    return dict.fromkeys(packed[start : start + HASH_CHARS] for start in range(0, len(packed), HASH_CHARS))


def with_latest(packed: str, new: Iterable[str], most: int) -> str:
    """The packed list with further hashes, without the oldest of more than `most`."""
    return (packed + "".join(new))[-most * HASH_CHARS :]


def with_launch(state: RuleState) -> RuleState:
    """The state after its firing's run was launched. Safe to repeat."""
    firing = state.firing
    if firing is None:
        return state
    last = Fired(number=firing.number, run_id=firing.run_id, condition=firing.condition, at=firing.at)
    return replace(state, firing=None, current_run=firing.run_id, last=last)


def given_up(state: RuleState, reason: str, now: datetime) -> RuleState:
    """The state after its firing failed permanently, for example because its template is gone."""
    if state.firing is None:
        return state
    held = HeldBack(condition=state.firing.condition, reason=reason, at=now)
    return replace(state, firing=None, held=held)


def why_held(state: RuleState | None) -> str | None:
    """Why the rule did not fire on the order just decided; None if it fired."""
    held = state.held if state is not None else None
    if state is None or held is None or held.condition is not ConditionKind.MANUAL:
        return None
    waits = state.queued is not None and state.queued.condition is ConditionKind.MANUAL
    return f"{held.reason}; it fires when that is over" if waits else held.reason


class RuleStanding(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    RETRYING = "retrying"
    DISABLED = "disabled"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


@dataclass(frozen=True, kw_only=True)
class RuleStatus:
    """The status of the latest drop of a rule's file.

    Attributes:
        fires_by: the conditions of the accepted rule, of which any fires it; one that combines several begins with `all of`.
        report_uri: why it was refused.
        in_force: the generation that stays active while a newer one is refused, or None.
        firings: the number of firings so far.
        reason: why the rule is in this standing.
        problems: the first faults of a refused rule, and how many more there are; None for a rule without faults.
        faults: the same faults as in the report, with their places in the text.
    """

    schema: str = "rule_status.v1"
    dropped_name: str
    generation: int
    state: RuleStanding
    updated_at: datetime
    rule_id: str | None = None
    fires_by: tuple[str, ...] | None = None
    report_uri: str | None = None
    in_force: int | None = None
    firings: int | None = None
    last_firing: Fired | None = None
    held: HeldBack | None = None
    reason: str | None = None
    problems: tuple[str, ...] | None = None
    faults: tuple[Mapping[str, object], ...] | None = None


def status_of(rule: Rule, state: RuleState | None, now: datetime) -> RuleStatus:
    """The status of an accepted rule."""
    standing = RuleStanding.ACCEPTED if rule.enabled else RuleStanding.DISABLED
    if rule.quarantine is not None:
        standing = RuleStanding.QUARANTINED
    return RuleStatus(
        dropped_name=rule.dropped_name,
        generation=rule.generation,
        state=standing,
        updated_at=now,
        rule_id=rule.rule_id,
        fires_by=tuple(map(str, rule.conditions)),
        in_force=rule.generation if standing is RuleStanding.ACCEPTED else None,
        firings=state.number if state else 0,
        last_firing=state.last if state else None,
        held=state.held if state else None,
        reason=rule.quarantine.reason if rule.quarantine is not None else None,
    )
