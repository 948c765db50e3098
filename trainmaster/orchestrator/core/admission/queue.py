"""The queue: runs are admitted by priority, then by arrival, in a separate line for each quota class.

A pass walks the queue from its head. A class that was refused once is closed for the rest of the pass, so that no run
overtakes another of its class. A run that is blocked on a limit delays only later runs under that limit, of any class.
A limit is a set of numbered slots, shared by exactly the runs that it covers.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.policy.policy import Policy, glob_matches

Order = tuple[int, datetime, str]
_PLAIN = re.compile(r"[a-z0-9_-]{1,63}")
_HASH_CHARS = 20
_DOTS_OF_LABEL = 2
"""In the name of the set of one label: `label.team.blue`."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A run's place in the queue."""

    run_id: str
    region: str
    """Where the next attempt is made."""
    priority: int
    arrived_at: datetime
    classes: tuple[str, ...]
    """The quota classes of the candidates, from the next one on."""
    not_before: datetime
    """When the next attempt is due."""
    limits: tuple[str, ...] = ()
    """The limits that cover the run."""
    rate_limited: bool = False
    """The service asked for fewer requests: nothing is submitted to the region until `not_before`."""
    blocked_on_limit: str | None = None
    """The limit that the run waits for, if it waits for nothing else."""

    @property
    def order(self) -> Order:
        """Runs sort by it: the smallest goes first."""
        return -self.priority, self.arrived_at, self.run_id

    @property
    def quota_class(self) -> str:
        return self.classes[0]


@dataclass(kw_only=True)
class QueuePass:
    """What one pass along the queue knows: which runs wait, and where there was room.

    `room_freed`: a run has ended, so the first run of each class is tried even before its pause is over. `has_more`:
    further runs wait behind all of `places`.
    """

    places: Sequence[Place]
    began_at: datetime
    room_freed: bool = False
    has_more: bool = False
    paused_until: dict[str, datetime] = field(default_factory=dict)
    """By region."""
    _blocked: Sequence[Place] = field(init=False)
    _unblocked: Mapping[str, Sequence[Place]] = field(init=False)  # by class: few, of thousands of places
    _closed: dict[str, str] = field(default_factory=dict)
    """By class, why."""
    _open: set[str] = field(default_factory=set)
    _full: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)
    _claimed: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._arrange(self.places)
        for place in self.places:
            if place.rate_limited and place.not_before > self.began_at:
                self.pause(place.region, place.not_before)

    def may_have(self, place: Place) -> bool:
        """Whether the queue may hold the place behind those that were listed."""
        return self.has_more and (not self.places or place.order > self.places[-1].order)

    def add(self, place: Place) -> None:
        """Add a place that the listing did not show. Only before the pass has reached its first run."""
        self._arrange((*self.places, place))

    def _arrange(self, places: Sequence[Place]) -> None:
        self.places = sorted(places, key=lambda place: place.order)
        self._blocked = [place for place in self.places if place.blocked_on_limit is not None]
        self._unblocked = by_class = dict[str, list[Place]]()
        for place in self.places:
            if place.blocked_on_limit is None:
                by_class.setdefault(place.quota_class, []).append(place)

    def blocker(self, own: Place, quota_class: str) -> str | None:
        """Why this run may not submit a job of that class now; None: it may."""
        if quota_class in self._closed:
            return self._closed[quota_class]
        other = self.ahead(own, quota_class)
        return None if other is None else f"{other.run_id} is ahead of it, waiting for the same"

    def ahead(self, own: Place, quota_class: str) -> Place | None:
        """The first run that waits for room of that class, if it goes before this one."""
        first = self._head(quota_class, besides=own)
        return first if first is not None and first.order < own.order else None

    def _competes(self, other: Place, own: Place) -> bool:
        return other.run_id not in self._gone and other.run_id != own.run_id

    def ahead_at_limit(self, own: Place) -> Place | None:
        """The earlier run that is blocked on a limit of both, and would be admitted if the limit had a free slot.

        A limit is one line for all classes, but a run that also waits for room delays no other run there.
        """
        for other in self._blocked:
            if other.order >= own.order:
                return None
            is_same = other.blocked_on_limit in own.limits and self._competes(other, own)
            if is_same and self._could_go(other):
                return other
        return None

    def _could_go(self, other: Place) -> bool:
        """Whether only its limit blocks it."""
        if self.is_paused(other.region) or not self._full.isdisjoint(other.limits):
            return False
        for quota_class in other.classes:
            head = self._head(quota_class)
            if quota_class not in self._closed and (head is None or head.order > other.order):
                return True
        return False

    def _head(self, quota_class: str, besides: Place | None = None) -> Place | None:
        there = (place for place in self._unblocked.get(quota_class, ()) if place.run_id not in self._gone)
        return next((place for place in there if besides is None or place.run_id != besides.run_id), None)

    def skips(self, place: Place) -> bool:
        """Whether that run must be skipped in this pass; call it in the order of the places."""
        if (
            place.run_id in self._gone
            or self.is_paused(place.region)
            or not self._full.isdisjoint(place.limits)
            or self.ahead_at_limit(place) is not None
        ):
            return True
        due = place.blocked_on_limit is not None or place.not_before <= self.began_at
        first = place.quota_class
        if self.blocker(place, first) is not None:
            # Another of its candidates may still find room.
            return not due or all(self.blocker(place, other) is not None for other in place.classes)
        if due or self.room_freed or first in self._open:
            return False
        self.close(first)  # no later run of the class may overtake it
        return True

    def is_paused(self, region: str) -> bool:
        """Whether the service asked for fewer requests to that region."""
        return region in self.paused_until

    def pause(self, region: str, until: datetime) -> None:
        self.paused_until[region] = max(until, self.paused_until.get(region, until))

    def close(self, quota_class: str, why: str | None = None) -> None:
        """The class has no room, or its first run could not be tried."""
        self._closed[quota_class] = why or f"there was no room for {quota_class} just now"
        self._open.discard(quota_class)

    def mark_full(self, limit: str) -> None:
        """The limit has no free slot."""
        self._full.add(limit)

    def mark_claimed(self, place: Place) -> None:
        """Another attempt is submitting that run now: whether it finds room is not known.

        No run waits behind it, but its slot of each limit is kept.
        """
        self._gone.add(place.run_id)
        self._claimed.append(place)

    def claimed_at(self, limit: str) -> frozenset[str]:
        """The claimed runs that still need a slot of the limit."""
        return frozenset(place.run_id for place in self._claimed if limit in place.limits)

    def mark_gone(self, run_id: str) -> None:
        """The run no longer waits."""
        self._gone.add(run_id)

    def mark_admitted(self, run_id: str, quota_class: str) -> None:
        """The run no longer waits, and the class had room for it."""
        self.mark_gone(run_id)
        if quota_class not in self._closed:
            self._open.add(quota_class)


@dataclass(frozen=True, kw_only=True)
class SlotSet:
    """Slots 0 to `slots` - 1 under a name that is one path component; `text` describes the limit to users."""

    name: str
    slots: int
    text: str = field(default="", compare=False)


def limits_of(
    policy: Policy | None, model_name: str, labels: Mapping[str, str], team: str | None = None
) -> tuple[SlotSet, ...]:
    """The sets of which the run needs one slot each, sorted by name; empty if no limit covers it.

    A name identifies the runs that the limit covers and not their number, so slots stay taken when the policy's number
    changes. Limits for different runs have different names. Limits for the same runs form one set, with the smaller
    number.
    """
    sets: dict[str, int] = {}
    texts: dict[str, str] = {}
    for limit in policy.admission.limits if policy is not None else ():
        for name, text in _names(limit, model_name, labels, team):
            texts[name] = text
            sets[name] = min(limit.jobs, sets.get(name, limit.jobs))
    return tuple(SlotSet(name=name, slots=sets[name], text=texts[name]) for name in sorted(sets))


def _names(
    limit: Limit, model_name: str, labels: Mapping[str, str], team: str | None
) -> Iterator[tuple[str, str]]:
    """The name of the limit's set for this run, if the limit covers it, and its description."""
    if limit.per_model:
        own = in_team(team, model_name)
        yield _name("model", *own.split("/")), f"of the model {own}"
    elif limit.per_team:
        if team is not None:
            yield _name("team", team), f"of the team {team}"
    elif limit.per_label is not None:
        if limit.per_label in labels:
            value = labels[limit.per_label]
            yield _name("label", limit.per_label, value), f"of the label {limit.per_label}: {value}"
    elif limit.model is not None:
        if glob_matches(limit.model, model_name):
            several = "models" if "*" in limit.model else "model"
            yield _name(several, limit.model), f"of the {several} {limit.model}"
    elif limit.labels:
        if all(labels.get(key) == value for key, value in limit.labels.items()):
            pairs = sorted(limit.labels.items())
            labelled = ", ".join(f"{key}: {value}" for key, value in pairs)
            yield _name("label", *(part for pair in pairs for part in pair)), f"of the label {labelled}"
    else:
        yield "all", "of all runs"


def jobs_of_set(admission: Admission, name: str) -> int | None:
    """How many slots the set of that name has; None if no limit of the policy makes such a set any more."""
    return min((limit.jobs for limit in admission.limits if _makes(limit, name)), default=None)


def _makes(limit: Limit, name: str) -> bool:
    """Whether the limit makes a set of that name for some run."""
    if limit.per_model or limit.per_team:
        return name.startswith("model." if limit.per_model else "team.")
    if limit.per_label is not None:
        return name.startswith(f"{_name('label', limit.per_label)}.") and name.count(".") == _DOTS_OF_LABEL
    model_name = limit.model.replace("*", "") if limit.model else ""
    return any(name == made for made, _ in _names(limit, model_name, limit.labels, None))


def _name(kind: str, *parts: str) -> str:
    """`label.team.blue`: no label or model name contains '.'; a part with other characters is replaced by its hash."""
    return ".".join([kind, *map(_part, parts)])


def _part(text: str) -> str:
    # No plain part has a capital letter, so none equals a hash.
    return text if _PLAIN.fullmatch(text) else f"X{hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]}"
