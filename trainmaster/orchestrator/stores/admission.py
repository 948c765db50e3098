"""The queue, the slots of limits, and the marks of what was started: small objects, read by listings alone."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from itertools import islice, takewhile

from trainmaster.orchestrator.core.admission.caps import CountedStart
from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.documents.codec import decoded_time, encoded_time
from trainmaster.orchestrator.core.errors import GenerationMoved
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
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.store import TEXT, Store


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A taken slot as it was read, and the version that whoever frees it or takes it over must name.

    `holder` is a run's id.
    """

    limit: str
    number: int
    holder: str
    version: int
    taken_at: datetime

    @property
    def name(self) -> str:
        return f"{self.limit}/{self.number}"


class Queue(Store):
    """Who waits. A record says the same; where they differ, the record counts.

    Objects are empty; the name and the metadata say all.
    """

    def places(self) -> Sequence[Place]:
        """Every place, of all regions, in any order; what cannot be read as one is left out."""
        listed = self.objects.listing(self.bucket, WAITING_PREFIX)
        return [place for place in map(_place, listed) if place is not None]

    def put(self, place: Place) -> None:
        """Write the place, or write it over. Safe to repeat."""
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
        """Take the place away. Safe to repeat."""
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


class Slots(Store):
    """Which run holds which slot of a limit; changed only by compare-and-set.

    An object holds the run's id, in its metadata too.
    """

    def taken(self, limit: str) -> Sequence[Slot]:
        """Every taken slot of the limit, by number."""
        listed = self.objects.listing(self.bucket, slot_object(f"{limit}/"))
        found = [slot for slot in map(_slot, listed) if slot is not None]
        return sorted(found, key=lambda slot: slot.number)

    def take(self, limit: str, number: int, run_id: str, *, instead_of: Slot | None = None) -> str:
        """The slot, now the run's: a free one, or one that is still as `instead_of` was read.

        The answer is the slot's name at the version just written, LIMIT/NUMBER@VERSION, which `free` wants.

        Raises:
            GenerationMoved: it is not so any more; perhaps an answer was lost, and the slot is the run's.
        """
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
        """Give the slot back, if it is still as `take` left it. Safe to repeat, and while others take slots.

        A slot that was taken again meanwhile stays, whoever took it: the same run may need it for its next job.
        """
        name, generation = held_slot_parts(held)
        with suppress(GenerationMoved):
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


class Starts(Store):
    """Marks of the runs that were started, for the caps, and which caps were told of."""

    def of_day(self, day: date) -> Sequence[CountedStart]:
        """Every mark of the day (UTC)."""
        return self._marks(started_prefix(day))

    def of_hour(self, moment: datetime) -> Sequence[CountedStart]:
        """Every mark of the hour (UTC) in which that moment lies."""
        return self._marks(started_object(moment, ""))

    def _marks(self, prefix: str) -> Sequence[CountedStart]:
        listed = self.objects.listing(self.bucket, prefix)
        return [mark for mark in map(_counted, listed) if mark is not None]

    def mark(self, run_id: str, at: datetime, cost: Decimal | None) -> None:
        """Mark the run as started. Safe to repeat: the first mark of an hour stays."""
        with suppress(GenerationMoved):
            self.objects.write(
                self.bucket,
                started_object(at, run_id),
                b"",
                if_generation=0,
                metadata={} if cost is None else {"cost": f"{cost:f}"},
                content_type=TEXT,
            )

    def unmark(self, counted: CountedStart) -> None:
        """Take the mark away. Safe to repeat."""
        self.objects.delete(self.bucket, started_object(counted.counts_at, counted.run_id))

    def forget(self, before: date, most: int) -> int:
        """Take away at most so many marks of days before that one, the oldest first; how many they were."""
        limit = started_prefix(before)
        # By name, and so by day: whoever stops early pays for the pages that were needed.
        listed = self.objects.listing(self.bucket, STARTED_PREFIX)
        old = takewhile(lambda each: each.name < limit, listed)
        names = [each.name for each in islice(old, most)]
        for name in names:
            self.objects.delete(self.bucket, name)
        return len(names)

    def was_notified(self, window: str) -> bool:
        """Whether it was told that this cap was reached."""
        return self._find(cap_object(window)) is not None

    def keep_notified(self, window: str, document: Mapping[str, object]) -> None:
        """Write down that it was told. Safe to repeat."""
        self._write_once(cap_object(window), document)


def _counted(listed: Listed) -> CountedStart | None:
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
    return CountedStart(
        run_id=listed.name.rpartition("/")[2],
        created_at=listed.created_at,
        cost=cost,
        hour=hour,
        version=listed.generation,
    )
