"""Traces that a tick writes before its work, so that one that dies is noticed.

    ticks/under-way/<attempt>        a tick was at work, and has not ended in good order
    ticks/attempts/<kind>/<item>     a tick began its work on this item, or failed at it
    ticks/places                     after which item of each kind the last tick ran out of time

Everything is in the objects' metadata, so that one listing shows all of it. Each attempt has an object to itself,
because Cloud Storage allows one write a second per object name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice

from trainmaster.orchestrator.core.names import TICKS_PREFIX, attempt_object, tick_object
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.store import Store

PLACES_OBJECT = f"{TICKS_PREFIX}places"
LISTED_MAX = 10_000
"""Traces that a tick reads. Each tick leaves a few at most, and removes those that are out of date."""
FAILURE_MAX_CHARS = 300


class ItemKind(StrEnum):
    """What a tick works on."""

    RUN = "runs"
    RULE = "rules"
    DROP = "drops"


@dataclass(frozen=True, kw_only=True)
class Item:
    """A run, a rule or a dropped rule. `order` sorts the items of a kind; `generation` changes when it is new again."""

    kind: ItemKind
    name: str
    generation: int
    order: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A tick's work on an item.

    Attributes:
        number: attempts without success in a row, this one included; counts from 1.
        failure: how it failed; empty during the work, and forever if the tick died.
        at: when it began, or failed; the store's clock.
    """

    generation: int
    number: int
    at: datetime
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What earlier ticks, and those that still run, have left. `ticks`: when each was last at work, by its mark."""

    ticks: Mapping[str, datetime] = field(default_factory=dict)
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    def of(self, item: Item) -> Attempt | None:
        """The last attempt at this generation of the item; None before the first, and after a success."""
        found = self.attempts.get(attempt_object(item.kind, item.name))
        return found if found is not None and found.generation == item.generation else None


class Attempts(Store):
    """The traces of ticks."""

    def read(self) -> Traces:
        """Every trace, for one listing."""
        ticks, attempts, places = dict[str, datetime](), dict[str, Attempt](), dict[str, str]()
        for listed in islice(self.objects.listing(self.bucket, TICKS_PREFIX), LISTED_MAX):
            if listed.name == PLACES_OBJECT:
                places.update(listed.metadata)
            elif listed.name.startswith(tick_object("")):
                ticks[listed.name] = listed.created_at
            else:
                attempts[listed.name] = _attempt(listed)
        return Traces(ticks=ticks, attempts=attempts, places=places)

    def mark_tick(self, attempt: str) -> None:
        """Record that this tick is at work now."""
        self._mark(tick_object(attempt))

    def begin(self, item: Item, number: int, failure: str = "") -> None:
        """Record the attempt, before the work or after its failure. Safe to repeat."""
        traced = {"item": item.name, "generation": str(item.generation), "attempts": str(number)}
        if failure:
            traced["failure"] = failure[:FAILURE_MAX_CHARS]
        self._mark(attempt_object(item.kind, item.name), traced)

    def forget(self, item: Item) -> None:
        """Forget the item's failures. Safe to repeat."""
        self.remove(attempt_object(item.kind, item.name))

    def keep_places(self, places: Mapping[str, str]) -> None:
        """Keep where the ticks stopped, by kind. Concurrent ticks may overwrite each other's: they are only hints."""
        if places:
            self._mark(PLACES_OBJECT, places)
        else:
            self.remove(PLACES_OBJECT)

    def remove(self, name: str) -> None:
        """Remove the trace with this object name. Safe to repeat."""
        self.objects.delete(self.bucket, name)


def _attempt(listed: Listed) -> Attempt:
    """The attempt in the object's metadata; a damaged one has no generation, and so counts for nothing."""
    found = Attempt(generation=0, number=1, at=listed.created_at, failure=listed.metadata.get("failure", ""))
    try:
        generation, number = (int(listed.metadata[key]) for key in ("generation", "attempts"))
        return replace(found, generation=generation, number=number)
    except (KeyError, ValueError):
        return found
