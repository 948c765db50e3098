"""Queue, slots and starts over any object store: small objects, read by listings alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from itertools import islice, takewhile

from trainmaster.orchestrator.adapters.objects import Listed, Objects, json_bytes
from trainmaster.orchestrator.core.admission.caps import Counted
from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.documents.codec import decoded_time, encoded_time
from trainmaster.orchestrator.core.errors import GenerationMoved, ObjectGone
from trainmaster.orchestrator.core.names import (
    SLOTS_PREFIX,
    STARTED_PREFIX,
    WAITING_PREFIX,
    cap_object,
    held_slot,
    held_slot_parts,
    slot_object,
    started_hour,
    started_object,
    started_prefix,
    waiting_object,
    waiting_parts,
)
from trainmaster.orchestrator.ports.admission import Slot

TEXT = "text/plain"


@dataclass(frozen=True)
class StoredQueue:
    """See `trainmaster.orchestrator.ports.admission.Queue`. Objects are empty; the name and the metadata say all."""

    objects: Objects
    bucket: str

    def places(self) -> Sequence[Place]:
        listed = self.objects.listing(self.bucket, WAITING_PREFIX)
        return [place for place in map(_place, listed) if place is not None]

    def put(self, place: Place) -> None:
        metadata = {
            "region": place.region,
            "classes": ",".join(place.classes),
            "not_before": encoded_time(place.not_before),
            "limits": ",".join(place.limits),
            "rate_limited": str(place.rate_limited).lower(),
            "blocked_on_limit": place.blocked_on_limit or "",
        }
        self.objects.write(
            self.bucket, _name(place), b"", if_generation=None, metadata=metadata, content_type=TEXT
        )

    def remove(self, place: Place) -> None:
        self.objects.delete(self.bucket, _name(place))


def _name(place: Place) -> str:
    return waiting_object(place.priority, place.arrived_at, place.run_id)


def _place(listed: Listed) -> Place | None:
    """The place; None for an object that is none, which must not stop the queue."""
    metadata = listed.metadata
    try:
        priority, arrived_at, run_id = waiting_parts(listed.name)
        return Place(
            run_id=run_id,
            region=metadata["region"],
            priority=priority,
            arrived_at=arrived_at,
            classes=tuple(metadata["classes"].split(",")),
            not_before=decoded_time(metadata["not_before"]),
            limits=tuple(filter(None, metadata.get("limits", "").split(","))),
            rate_limited=metadata.get("rate_limited") == "true",
            blocked_on_limit=metadata.get("blocked_on_limit") or None,
        )
    except (ValueError, KeyError):
        return None


@dataclass(frozen=True)
class StoredSlots:
    """See `trainmaster.orchestrator.ports.admission.Slots`. An object holds the run's id, in its metadata too."""

    objects: Objects
    bucket: str

    def taken(self, limit: str) -> Sequence[Slot]:
        listed = self.objects.listing(self.bucket, slot_object(f"{limit}/"))
        found = [slot for slot in map(_slot, listed) if slot is not None]
        return sorted(found, key=lambda slot: slot.number)

    def take(self, limit: str, number: int, run_id: str, *, instead_of: Slot | None = None) -> str:
        name = f"{limit}/{number}"
        generation = self.objects.write(
            self.bucket,
            slot_object(name),
            run_id.encode(),
            if_generation=0 if instead_of is None else instead_of.version,
            metadata={"run_id": run_id},
            content_type=TEXT,
        )
        return held_slot(name, generation)

    def free(self, held: str) -> None:
        name, generation = held_slot_parts(held)
        with suppress(GenerationMoved):  # then it was taken again
            self.objects.delete(self.bucket, slot_object(name), if_generation=generation)


def _slot(listed: Listed) -> Slot | None:
    limit, _, number = listed.name.removeprefix(SLOTS_PREFIX).rpartition("/")
    if not number.isdecimal():
        return None
    return Slot(
        limit=limit,
        number=int(number),
        holder=listed.metadata.get("run_id", ""),
        version=listed.generation,
        taken_at=listed.created_at,
    )


@dataclass(frozen=True)
class StoredStarts:
    """See `trainmaster.orchestrator.ports.admission.Starts`."""

    objects: Objects
    bucket: str

    def of_day(self, day: date) -> Sequence[Counted]:
        return self._marks(started_prefix(day))

    def of_hour(self, moment: datetime) -> Sequence[Counted]:
        return self._marks(started_object(moment, ""))

    def _marks(self, prefix: str) -> Sequence[Counted]:
        listed = self.objects.listing(self.bucket, prefix)
        return [mark for mark in map(_counted, listed) if mark is not None]

    def mark(self, run_id: str, at: datetime, cost: Decimal | None) -> None:
        with suppress(GenerationMoved):
            self.objects.write(
                self.bucket,
                started_object(at, run_id),
                b"",
                if_generation=0,
                metadata={} if cost is None else {"cost": f"{cost:f}"},
                content_type=TEXT,
            )

    def unmark(self, counted: Counted) -> None:
        self.objects.delete(self.bucket, started_object(counted.counts_at, counted.run_id))

    def forget(self, before: date, most: int) -> int:
        limit = started_prefix(before)
        old = takewhile(lambda each: each.name < limit, self._all())
        names = [each.name for each in islice(old, most)]
        for name in names:
            self.objects.delete(self.bucket, name)
        return len(names)

    def _all(self) -> Iterator[Listed]:
        """By name, and so by day: whoever stops early pays for the pages that were needed."""
        return self.objects.listing(self.bucket, STARTED_PREFIX)

    def was_told(self, window: str) -> bool:
        try:
            self.objects.read(self.bucket, cap_object(window))
        except ObjectGone:
            return False
        return True

    def keep_told(self, window: str, document: Mapping[str, object]) -> None:
        with suppress(GenerationMoved):
            self.objects.write(self.bucket, cap_object(window), json_bytes(document), if_generation=0)


def _counted(listed: Listed) -> Counted | None:
    """The mark; None for an object that is none, which must not keep every run from being started."""
    try:
        hour = started_hour(listed.name)
    except ValueError:
        return None
    text = listed.metadata.get("cost")
    try:
        cost = None if text is None else Decimal(text)
    except InvalidOperation:
        cost = None
    return Counted(
        run_id=listed.name.rpartition("/")[2],
        created_at=listed.created_at,
        cost=cost,
        hour=hour,
        version=listed.generation,
    )
