"""Lists the markers of active runs, and the objects that decide when runs start. No record is read.

Each listing costs one storage operation for each thousand objects, and raises `GoogleAPICallError` where it is refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.orchestrator.core.admission.caps import CountedStart
from trainmaster.orchestrator.core.admission.listed import Slot, parse_place, parse_slot, parse_starts
from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.names import (
    ACTIVE_PREFIX,
    SLOTS_PREFIX,
    WAITING_PREFIX,
    is_run_id,
    started_prefix,
)

OBJECTS_MAX = 10_000
"""Of each listing; a thousand are one storage operation."""
_FIELDS = "items(name,metadata,generation,timeCreated),nextPageToken"


@dataclass(frozen=True, kw_only=True)
class AdmissionObjects:
    """Who waits, which slots are taken, and which runs were started today (UTC)."""

    places: Sequence[Place]
    slots: Sequence[Slot]
    starts: Sequence[CountedStart]
    complete: bool = True
    """Whether no listing reached OBJECTS_MAX."""


def read_admission_objects(
    clients: Clients, now: datetime, starts: Sequence[CountedStart] | None = None
) -> AdmissionObjects:
    """The objects in all regions, by three listings; by two if the `starts` are given.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be listed.
    """
    waiting, slots = (list(ledger_objects(clients, prefix)) for prefix in (WAITING_PREFIX, SLOTS_PREFIX))
    started = read_starts(clients, now) if starts is None else starts
    return AdmissionObjects(
        places=_parse_places(waiting),
        slots=[slot for slot in map(_parse_slot, slots) if slot is not None],
        starts=started,
        complete=max(len(waiting), len(slots), 2 * len(started)) < OBJECTS_MAX,  # a start and its end
    )


def read_starts(clients: Clients, now: datetime) -> list[CountedStart]:
    """Today's starts alone, each with its end, by one listing."""
    listed = ledger_objects(clients, started_prefix(now.astimezone(UTC).date()))
    seen = ((blob.name, blob.metadata or {}, blob.generation, blob.time_created) for blob in listed)
    return parse_starts(seen, OBJECTS_MAX)


def read_places(clients: Clients) -> list[Place]:
    """The queue alone, in any order, by one listing."""
    return _parse_places(ledger_objects(clients, WAITING_PREFIX))


# Any: the library's blobs carry no types.
def _parse_places(blobs: Iterable[Any]) -> list[Place]:
    """The places among the objects; others are left out."""
    return [place for blob in blobs if (place := parse_place(blob.name, blob.metadata or {})) is not None]


def _parse_slot(blob: Any) -> Slot | None:
    metadata = blob.metadata or {}
    return parse_slot(blob.name, metadata, generation=blob.generation, created_at=blob.time_created)


def active_runs(clients: Clients) -> list[str]:
    """The ids of the runs that have not ended, waiting ones included, by name, from their markers; at most OBJECTS_MAX.

    The marker of a run that has just ended may still be there.
    """
    names = (blob.name.removeprefix(ACTIVE_PREFIX) for blob in ledger_objects(clients, ACTIVE_PREFIX))
    return [name for name in names if is_run_id(name)]


def ledger_objects(clients: Clients, prefix: str) -> Iterator[Any]:
    """At most OBJECTS_MAX objects of the ledger, by name."""
    found = clients.storage.list_blobs(clients.context.ledger_bucket, prefix=prefix, fields=_FIELDS)
    return islice(found, OBJECTS_MAX)
