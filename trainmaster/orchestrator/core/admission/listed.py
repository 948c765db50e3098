"""Places in the queue, taken slots, and the marks of started runs, as a listing shows them.

Names and metadata hold everything, so no object is read. Any other object under the same prefix is None, because it must
not stop runs from starting.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation

from trainmaster.orchestrator.core.admission.caps import CountedEnd, CountedStart
from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.documents.codec import decoded_time, encoded_time
from trainmaster.orchestrator.core.names import SLOTS_PREFIX, started_hour, waiting_object, waiting_parts


def place_object(place: Place) -> str:
    return waiting_object(place.priority, place.arrived_at, place.run_id)


def place_metadata(place: Place) -> dict[str, str]:
    """The metadata that `parse_place` reads."""
    return {
        "region": place.region,
        "classes": ",".join(place.classes),
        "not_before": encoded_time(place.not_before),
        "limits": ",".join(place.limits),
        "rate_limited": str(place.rate_limited).lower(),
        "blocked_on_limit": place.blocked_on_limit or "",
    }


def parse_place(object_name: str, metadata: Mapping[str, str]) -> Place | None:
    """The place; None for any other object, which must not stop the queue."""
    try:
        priority, arrived_at, run_id = waiting_parts(object_name)
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


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A taken slot as it was read, and the version that must be named to free it or take it over.

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


def parse_slot(
    object_name: str, metadata: Mapping[str, str], *, generation: int, created_at: datetime
) -> Slot | None:
    """The slot with this `slot_object` name, whose metadata name its holder."""
    limit, _, number = object_name.removeprefix(SLOTS_PREFIX).rpartition("/")
    if not number.isdecimal():
        return None
    return Slot(
        limit=limit,
        number=int(number),
        holder=metadata.get("run_id", ""),
        version=generation,
        taken_at=created_at,
    )


def parse_starts(
    listed: Iterable[tuple[str, Mapping[str, str], int, datetime]], most: int
) -> list[CountedStart]:
    """The first `most` marks of these names, metadata, versions and times, each with that of its end."""
    marks, ends = list[CountedStart](), dict[str, list[CountedEnd]]()
    for name, metadata, version, created_at in listed:
        run_id, cost, hour = name.rpartition("/")[2], _number(metadata, "cost"), started_hour(name)
        if hour is not None:
            mark = CountedStart(run_id=run_id, created_at=created_at, cost=cost, hour=hour, version=version)
            marks.append(replace(mark, runs=int(_number(metadata, "runs") or 1)))
        elif cost is not None and name.endswith(f"/ended/{run_id}"):
            end = CountedEnd(created_at=created_at, version=version, cost=cost)
            ends.setdefault(metadata.get("group", run_id), []).append(end)
        if len(marks) == most:
            break
    return [replace(mark, end=_end_of_all(mark, ends.get(mark.run_id, []))) for mark in marks]


def _end_of_all(mark: CountedStart, ends: Sequence[CountedEnd]) -> CountedEnd | None:
    """The last end, with the cost of all runs; None before each has ended."""
    if len(ends) < mark.runs:
        return None
    last = max(ends, key=lambda end: (end.created_at, end.version))
    return replace(last, cost=sum((end.cost for end in ends), Decimal(0)))


def _number(metadata: Mapping[str, str], key: str) -> Decimal | None:
    try:
        return Decimal(metadata[key])
    except (KeyError, InvalidOperation):
        return None
