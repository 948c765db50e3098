"""The queue, the slots of limits, and the marks of started runs: small objects that are read by listings alone."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal

from trainmaster.orchestrator.core import names
from trainmaster.orchestrator.core.admission.caps import COUNTED_MAX, CountedStart
from trainmaster.orchestrator.core.admission.listed import (
    Slot,
    parse_place,
    parse_slot,
    parse_starts,
    place_metadata,
    place_object,
)
from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.documents.codec import json_bytes
from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.store import Store

PLACES_MAX = 10_000
"""Waiting runs that one pass looks at: ten storage operations."""
POOLS_MAX = 1000
"""Marks of persistent resources, also of earlier policies: one storage operation."""


class Queue(Store):
    """Which runs wait. Records say the same; where they differ, the record counts.

    Objects are empty: their names and metadata hold everything.
    """

    def places(self) -> tuple[Sequence[Place], bool]:
        """The first PLACES_MAX places in the order of the queue, in all regions, and whether further runs wait behind them.

        Objects that cannot be read as a place are left out.
        """
        listed, has_more = self._first(names.WAITING_PREFIX, PLACES_MAX)
        places = (parse_place(entry.name, entry.metadata) for entry in listed)
        return [place for place in places if place is not None], has_more

    def put(self, place: Place) -> None:
        """Write the place, or write it over. Safe to repeat."""
        self._mark(place_object(place), place_metadata(place))

    def remove(self, place: Place) -> None:
        """Remove the place. Safe to repeat."""
        self.objects.delete(self.bucket, place_object(place))


class Slots(Store):
    """Which run holds which slot of a limit; changed only by compare-and-set.

    The object's content is the run's id, which its metadata repeats.
    """

    def taken_slots(self, limit: str) -> Sequence[Slot]:
        """Every taken slot of the limit, by number: as many as the policy ever allowed at once, 10,000 at most."""
        listed = self.objects.listing(self.bucket, names.slot_object(f"{limit}/"))
        found = (
            parse_slot(entry.name, entry.metadata, generation=entry.generation, created_at=entry.created_at)
            for entry in listed
        )
        return sorted((slot for slot in found if slot is not None), key=lambda slot: slot.number)

    def take(self, limit: str, number: int, run_id: str, *, instead_of: Slot | None = None) -> str:
        """Take the slot for the run: a free one, or one that is unchanged since `instead_of` was read.

        Returns the slot's name at the version just written, LIMIT/NUMBER@VERSION, which `free` expects.

        Raises:
            GenerationMoved: the slot has changed; possibly a response was lost, and the slot is the run's.
        """
        name, before = f"{limit}/{number}", 0 if instead_of is None else instead_of.version
        content, metadata = run_id.encode(), {"run_id": run_id}
        generation = self._mark(names.slot_object(name), metadata, content=content, if_generation=before)
        return names.held_slot(name, generation)

    def free(self, held: str) -> None:
        """Give the slot back, if it is unchanged since `take`. Safe to repeat, and while other attempts take slots.

        A slot that was taken again meanwhile stays: even the same run may need it for its next job.
        """
        name, generation = names.held_slot_parts(held)
        with suppress(GenerationMoved):
            self.objects.delete(self.bucket, names.slot_object(name), if_generation=generation)


class PoolMarks(Store):
    """When the persistent resources that are deleted when idle were last used, or that one is being deleted."""

    def of_all(self) -> Mapping[str, Listed]:
        """By `pool_object`; `created_at` is when the mark was written."""
        listed, _ = self._first(names.POOLS_PREFIX, POOLS_MAX)
        return {entry.name: entry for entry in listed}

    def is_deleting(self, mark: Listed) -> bool:
        return mark.metadata.get("state") == "deleting"

    def mark(self, region: str, pool_id: str, *, is_deleting: bool, instead_of: int) -> None:
        """Write the mark over the one of this generation, 0 for none. Raises GenerationMoved."""
        metadata = {"state": "deleting" if is_deleting else "used"}
        self._mark(names.pool_object(region, pool_id), metadata, if_generation=instead_of)


class Starts(Store):
    """Marks of started runs, for the caps, and which reached caps were reported."""

    def of_day(self, day: date) -> Sequence[CountedStart]:
        """The marks of the day (UTC), at most COUNTED_MAX + 1, each with that of its end."""
        listed = self.objects.listing(self.bucket, names.started_prefix(day))
        seen = ((entry.name, entry.metadata, entry.generation, entry.created_at) for entry in listed)
        return parse_starts(seen, COUNTED_MAX + 1)

    def mark(self, run_id: str, at: datetime, cost: Decimal | None, runs: int = 1) -> None:
        """Mark the run, or the group with that many, as started. Safe to repeat: the first mark of an hour stays."""
        metadata = {} if cost is None else {"cost": f"{cost:f}"}
        metadata |= {} if runs == 1 else {"runs": str(runs)}
        with suppress(GenerationMoved):
            self._mark(names.started_object(at, run_id), metadata, if_generation=0)

    def settle(self, run_id: str, started_at: datetime, cost: Decimal, group: str | None = None) -> None:
        """Mark what the run, which has ended, cost. Safe to repeat: the first amount stays."""
        metadata = {"cost": f"{cost:f}"} | ({} if group is None else {"group": group})
        with suppress(GenerationMoved):
            self._mark(names.settled_object(started_at, run_id), metadata, if_generation=0)

    def was_notified(self, window: str) -> bool:
        """Whether it was reported that this cap was reached."""
        return self._find_bounded(names.cap_object(window), MAX_MARK_BYTES) is not None

    def keep_notified(self, window: str, document: Mapping[str, object]) -> None:
        """Record that it was reported. Safe to repeat."""
        self._write_once(names.cap_object(window), json_bytes(document))
