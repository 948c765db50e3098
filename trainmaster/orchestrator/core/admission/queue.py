"""Who waits, and whose turn it is: by priority, then by arrival, one line for each class of quota.

A walk goes along the queue from its head. A class that was refused a place once is not tried again in that walk,
so that nobody overtakes one who waits for the same. Who waits for a limit of its own steps aside and keeps nobody
but those of the same limit, of whatever class, who come after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

Order = tuple[int, datetime, str]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A run's place in the queue.

    `classes` are the quota classes of its rungs from the due one on; `region` is the due one's. `limits` are the
    limits it falls under. `too_fast`: until `not_before` nothing is to be submitted to the region. `aside`: the
    limit that it waits for, and nothing else.
    """

    run_id: str
    region: str
    priority: int
    arrived_at: datetime
    classes: tuple[str, ...]
    not_before: datetime
    limits: tuple[str, ...] = ()
    too_fast: bool = False
    aside: str | None = None

    @property
    def order(self) -> Order:
        """Who has the smaller one goes first."""
        return -self.priority, self.arrived_at, self.run_id

    @property
    def quota_class(self) -> str:
        return self.classes[0]


@dataclass(kw_only=True)
class Walk:
    """What one walk along the queue knows: who waits, and where it found no room, or room.

    `woken`: a run has ended, so whoever is first of a class is tried although its pause is not over.
    """

    places: Sequence[Place]
    began_at: datetime
    woken: bool = False
    held_until: dict[str, datetime] = field(default_factory=dict)
    _aside: Sequence[Place] = field(init=False)
    _closed: set[str] = field(default_factory=set)
    _open: set[str] = field(default_factory=set)
    _full: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)
    _in_hands: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._arrange(self.places)
        for place in self.places:
            if place.too_fast and place.not_before > self.began_at:
                self.hold(place.region, place.not_before)

    def joined(self, place: Place) -> None:
        """One more waits than the listing showed; to be told before the walk goes along."""
        self._arrange((*self.places, place))

    def _arrange(self, places: Sequence[Place]) -> None:
        self.places = sorted(places, key=lambda place: place.order)
        self._aside = [place for place in self.places if place.aside is not None]

    def why_not(self, own: Place, quota_class: str) -> str | None:
        """Why a job of that class may not be asked for now, for this run; None: it may."""
        if quota_class in self._closed:
            return f"there was no room for {quota_class} a moment ago"
        for other in self.places:
            if other.order >= own.order:
                return None
            if other.quota_class == quota_class and other.aside is None and self._waits_beside(own, other):
                return f"{other.run_id} waits for the same before it"
        return None

    def _waits_beside(self, own: Place, other: Place) -> bool:
        return other.run_id not in self._gone and other.run_id != own.run_id

    def before_at_limit(self, own: Place) -> Place | None:
        """Who waits aside for a limit of this run's, goes before it, and could go if the limit had a slot.

        A limit is one line whatever the classes; but nobody waits there for one who waits for room as well.
        """
        heads: dict[str, Place | None] = {}
        for other in self._aside:
            if other.order >= own.order:
                return None
            if other.aside in own.limits and self._waits_beside(own, other) and self._could_go(other, heads):
                return other
        return None

    def _could_go(self, other: Place, heads: dict[str, Place | None]) -> bool:
        """Whether but for its limit nothing keeps it. `heads` keeps the first of each class who waits for room."""
        if self.is_held(other.region) or not self._full.isdisjoint(other.limits):
            return False
        for each in other.classes:
            if each not in heads:
                heads[each] = next(
                    (
                        place
                        for place in self.places
                        if place.quota_class == each
                        and place.aside is None
                        and place.run_id not in self._gone
                    ),
                    None,
                )
            head = heads[each]
            if each not in self._closed and (head is None or head.order > other.order):
                return True
        return False

    def passes_over(self, place: Place) -> bool:
        """Whether this is not the turn of that place; places must be asked for in their order."""
        if (
            place.run_id in self._gone
            or self.is_held(place.region)
            or not self._full.isdisjoint(place.limits)
            or self.before_at_limit(place) is not None
        ):
            return True
        due = place.aside is not None or place.not_before <= self.began_at
        first = place.quota_class
        if self.why_not(place, first) is not None:
            # It may still find room on another rung of its ladder.
            return not due or all(self.why_not(place, each) is not None for each in place.classes)
        if due or self.woken or first in self._open:
            return False
        self.close(first)  # nobody behind it may go before it
        return True

    def is_held(self, region: str) -> bool:
        """Whether the service asked for fewer requests to that region."""
        return region in self.held_until

    def hold(self, region: str, until: datetime) -> None:
        self.held_until[region] = max(until, self.held_until.get(region, until))

    def close(self, quota_class: str) -> None:
        """There is no room for the class, or somebody is at the head of it already."""
        self._closed.add(quota_class)
        self._open.discard(quota_class)

    def fill(self, limit: str) -> None:
        """The limit has no free slot."""
        self._full.add(limit)

    def in_hands(self, place: Place) -> None:
        """Somebody else asks for that run at this moment: no room is known to be left by it, or taken.

        Nobody waits for it, but its slot of each limit is kept.
        """
        self._gone.add(place.run_id)
        self._in_hands.append(place)

    def kept_at(self, limit: str) -> frozenset[str]:
        """Who is in somebody's hands and needs a slot of the limit, if it has none yet."""
        return frozenset(place.run_id for place in self._in_hands if limit in place.limits)

    def went(self, run_id: str, quota_class: str | None = None) -> None:
        """The run waits no more; with a class, there was room for it."""
        self._gone.add(run_id)
        if quota_class is not None and quota_class not in self._closed:
            self._open.add(quota_class)
