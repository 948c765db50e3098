"""Reads the queue, the slots of limits and today's starts, by four listings: no record is read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.runs.admission_objects import (
    OBJECTS_MAX,
    ledger_objects,
    read_admission_objects,
    read_places,
)
from trainmaster.client.runs.listing import PAGE_SIZE, Filters, list_runs
from trainmaster.orchestrator.core.admission.caps import CountedStart
from trainmaster.orchestrator.core.admission.queue import Place, QueuePass, jobs_of_set
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import cap_object
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.states import RunState

QUEUE_SCHEMA = "queue.v1"
NEWEST = PAGE_SIZE - 1
"""One more would cost a second listing."""
_WAITING = frozenset({RunState.RESERVED, RunState.WAITING})
_CAPS_PREFIX = cap_object("").removesuffix(".json")


@dataclass(frozen=True, kw_only=True)
class Waits:
    """A run in the queue, and what it waits for: a slot of `limit`, fewer requests, or room for `quota_class`."""

    position: int
    """Counted from 1."""
    run_id: str
    priority: int
    arrived_at: datetime
    region: str
    quota_class: str
    not_before: datetime
    """When it is tried again, if it is not its turn earlier."""
    rate_limited: bool = False
    limit: str | None = None
    behind: str | None = None
    """The run that goes first."""


@dataclass(frozen=True, kw_only=True)
class HeldSlot:
    """A slot that a run holds while it has a job."""

    limit: str
    number: int
    run_id: str
    taken_at: datetime


@dataclass(frozen=True, kw_only=True)
class LimitInUse:
    """A limit under which runs hold slots, or wait for one."""

    name: str
    in_use: int
    jobs: int | None = None
    """How many it has; None if the policy is unknown, or has no such limit any more."""


@dataclass(frozen=True, kw_only=True)
class CapsNow:
    """The caps of the deployment's policy; None: not capped."""

    currency: str
    runs_per_hour: int | None = None
    cost_per_day: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class Started:
    """Runs that count towards the caps of this hour and day (UTC)."""

    this_hour: int
    today: int
    may_cost_today: Decimal | None = None
    """What those that ended cost, and the others may cost at most; runs without a known price count as nothing. None if no
    price is known."""


@dataclass(frozen=True, kw_only=True)
class QueueListing:
    """Who waits for what: schemas/queue.v1.schema.json."""

    schema: str = QUEUE_SCHEMA
    at: datetime
    waiting: tuple[Waits, ...]
    """In the order in which runs are admitted."""
    slots: tuple[HeldSlot, ...]
    limits: tuple[LimitInUse, ...]
    caps: CapsNow | None = None
    """None if the deployment's policy was not read."""
    started: Started
    caps_reached: tuple[str, ...]
    """Caps that refuse runs now, each with its hour or day: `runs_per_hour/2026-11-21T13`."""
    complete: bool = True
    """False if there are more objects than are read."""
    outside: tuple[IndexRow, ...] | None = None
    """Rows of runs that `runs_outside_queue` found, oldest first; None if they were not read."""

    @property
    def submitted_rows(self) -> tuple[IndexRow, ...]:
        """Those whose job the training service has not started yet."""
        return tuple(row for row in self.outside or () if row.state is RunState.SUBMITTED)

    @property
    def pausing_rows(self) -> tuple[IndexRow, ...]:
        """Those that pause before a retry, and have no place in the queue until then."""
        placed = {run.run_id for run in self.waiting}
        return tuple(row for row in self.outside or () if row.retry_at and row.run_id not in placed)

    @property
    def document(self) -> dict[str, Any]:
        document: Any = encoded(replace(self, outside=None))
        if self.outside is None:
            return dict(document)
        keys = ("run_id", "retry_at", "reason")
        pausing = [{key: encoded(getattr(row, key)) for key in keys} for row in self.pausing_rows]
        return {**document, "submitted": [row.run_id for row in self.submitted_rows], "pausing": pausing}


def read_queue(
    clients: Clients,
    now: datetime,
    admission: Admission | None = None,
    team: str | None = None,
    *,
    starts: Sequence[CountedStart] | None = None,
) -> QueueListing:
    """The queue as it is now, in all regions. `admission` is of the deployment's policy, if that is known.

    With `team`, `waiting` has only the runs of this team, each with its position in the whole queue; it costs one more
    operation for each thousand runs of the index, 20 at most. `starts` are today's, if they were read already.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be listed.
    """
    objects = read_admission_objects(clients, now, starts)
    caps = list(ledger_objects(clients, _CAPS_PREFIX))
    slots = tuple(
        HeldSlot(limit=slot.limit, number=slot.number, run_id=slot.holder, taken_at=slot.taken_at)
        for slot in objects.slots
    )
    waiting, complete = waiting_runs(objects.places, now), objects.complete
    if team is not None:
        owned = list_runs(clients, Filters(states=_WAITING, team=team), limit=OBJECTS_MAX)
        run_ids = {row.run_id for row in owned.rows}
        waiting = tuple(each for each in waiting if each.run_id in run_ids)
        complete = complete and owned.next_before is None
    return QueueListing(
        at=now,
        waiting=waiting,
        slots=slots,
        limits=tuple(_limits(slots, objects.places, admission)),
        caps=None if admission is None else _caps(admission.caps),
        started=_started_runs(objects.starts, now),
        caps_reached=tuple(_reached_caps([cap.name for cap in caps], now)),
        complete=complete,
    )


def runs_outside_queue(clients: Clients, team: str | None = None) -> tuple[IndexRow, ...]:
    """The rows of runs whose job has not started, or that wait, oldest first, among the newest NEWEST of all.

    Costs one listing. A tuning stays among them until a tick sees that its job runs.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the index cannot be listed.
    """
    filters = Filters(states=frozenset({RunState.SUBMITTED, RunState.WAITING}), team=team)
    found = list_runs(clients, filters, limit=NEWEST, scanned_max=NEWEST)
    return found.rows[::-1]


def waiting_place(clients: Clients, run_id: str, now: datetime) -> Waits | None:
    """The run's place among all that wait; None if it is not among the first OBJECTS_MAX. Costs one listing."""
    waiting = waiting_runs(read_places(clients), now)
    return next((run for run in waiting if run.run_id == run_id), None)


def waiting_runs(places: Sequence[Place], now: datetime) -> tuple[Waits, ...]:
    """What each run waits for, in the order of admission."""
    queue = QueuePass(places=places, began_at=now)
    return tuple(_waits(queue, place, number) for number, place in enumerate(queue.places, 1))


def _waits(queue: QueuePass, place: Place, position: int) -> Waits:
    limit = place.blocked_on_limit
    ahead = queue.ahead(place, place.quota_class) if limit is None else queue.ahead_at_limit(place)
    return Waits(
        position=position,
        run_id=place.run_id,
        priority=place.priority,
        arrived_at=place.arrived_at,
        region=place.region,
        quota_class=place.quota_class,
        not_before=place.not_before,
        rate_limited=queue.is_paused(place.region),
        limit=limit,
        behind=None if ahead is None else ahead.run_id,
    )


def _limits(
    slots: Sequence[HeldSlot], places: Sequence[Place], admission: Admission | None
) -> Iterator[LimitInUse]:
    taken = Counter(slot.limit for slot in slots)
    for name in sorted({*taken, *(place.blocked_on_limit for place in places if place.blocked_on_limit)}):
        jobs = None if admission is None else jobs_of_set(admission, name)
        yield LimitInUse(name=name, in_use=taken[name], jobs=jobs)


def _caps(caps: Caps) -> CapsNow:
    return CapsNow(currency=caps.currency, runs_per_hour=caps.runs_per_hour, cost_per_day=caps.cost_per_day)


def _started_runs(counted: Sequence[CountedStart], now: datetime) -> Started:
    runs: Mapping[str, CountedStart] = {each.run_id: each for each in counted}
    hour = now.astimezone(UTC).hour
    costs = [cost for start in runs.values() if (cost := (start.end or start).cost) is not None]
    return Started(
        this_hour=sum(each.runs for each in runs.values() if each.counts_at.hour == hour),
        today=sum(each.runs for each in runs.values()),
        may_cost_today=sum(costs, Decimal(0)) if costs else None,
    )


def _reached_caps(names: list[str], now: datetime) -> Iterator[str]:
    """The caps of this hour and day among the names."""
    utc = now.astimezone(UTC)
    for name in names:
        window = name.removeprefix(_CAPS_PREFIX).removesuffix(".json")
        if window.partition("/")[2] in {f"{utc:%Y-%m-%dT%H}", f"{utc:%Y-%m-%d}"}:
            yield window
