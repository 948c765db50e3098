"""The outlook of a new run: it starts at once, waits, or is refused by a cap. Pure.

The decision is the service's own, with the same queue: trainmaster/orchestrator/flows/submission/submit.py.
What Vertex AI itself would answer is known only once it is asked.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.client.runs.admission_objects import AdmissionObjects
from trainmaster.client.terminal import plural
from trainmaster.orchestrator.core.admission.candidates import Candidate, parse_candidates, quota_class
from trainmaster.orchestrator.core.admission.caps import CapReached, CountedStart, over_cap
from trainmaster.orchestrator.core.admission.listed import Slot
from trainmaster.orchestrator.core.admission.queue import Place, QueuePass, limits_of
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.request import Request

NEW_RUN = "new-run"
"""The id of the run in the plan. No run has it, because run ids end with a hash."""


@dataclass(frozen=True, kw_only=True)
class LimitNow:
    """A limit of the policy that covers the run: `jobs` may run at once, and `holders` are the runs that do."""

    name: str
    text: str
    jobs: int
    holders: tuple[str, ...]

    @property
    def is_full(self) -> bool:
        return len(self.holders) >= self.jobs


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What the service would do first: `starts`, `waits` or `refused` by a cap.

    Attributes:
        candidate: the number of the candidate that is submitted, or that it waits with.
        reason: why it waits or is refused; None if it starts.
        behind: the runs that go first, the next one first; for a full limit, those that hold its slots.
    """

    verdict: str
    candidate: int = 0
    reason: str | None = None
    behind: tuple[str, ...] = ()


def limits_now(request: Request, policy: Policy | None, slots: Sequence[Slot]) -> tuple[LimitNow, ...]:
    """The limits that cover the request's run, with the runs under each."""
    team = policy.team if policy is not None else None
    covering = limits_of(policy, request.spec.model_name, request.spec.labels, team)
    taken = sorted(slots, key=lambda slot: slot.number)
    return tuple(
        LimitNow(
            name=each.name,
            text=each.text,
            jobs=each.slots,
            holders=tuple(slot.holder for slot in taken if slot.limit == each.name),
        )
        for each in covering
    )


def outlook(request: Request, policy: Policy | None, listings: AdmissionObjects, now: datetime) -> Outlook:
    """What would happen to a run of the request that arrives now."""
    reached = _cap(request, policy, listings.starts, now)
    if reached is not None:
        return Outlook(verdict="refused", reason=str(reached.fault))
    candidates = parse_candidates(request.document, request.pools)
    limits = limits_now(request, policy, listings.slots)
    place = _place(request, candidates, limits, now)
    queue = QueuePass(places=listings.places, began_at=now)
    waits = [_outlook_with_candidate(candidate, place, queue, limits) for candidate in candidates]
    return next((wait for wait in waits if wait.verdict == "starts"), waits[0])


def _cap(
    request: Request, policy: Policy | None, starts: Sequence[CountedStart], now: datetime
) -> CapReached | None:
    if policy is None or not policy.admission.caps.counted:
        return None
    latest = max((now, *(mark.created_at for mark in starts)))
    cost = request.estimate.at_most * request.runs if request.estimate and request.estimate.at_most else None
    start = CountedStart(
        run_id=NEW_RUN, created_at=latest, cost=cost, hour=now, version=sys.maxsize, runs=request.runs
    )
    return over_cap(policy.admission.caps, starts, start)


def _place(
    request: Request, candidates: Sequence[Candidate], limits: Sequence[LimitNow], now: datetime
) -> Place:
    return Place(
        run_id=NEW_RUN,
        region=candidates[0].region,
        priority=request.spec.priority,
        arrived_at=now,
        classes=tuple(dict.fromkeys(map(quota_class, candidates))),
        not_before=now,
        limits=tuple(limit.name for limit in limits),
    )


def _outlook_with_candidate(
    candidate: Candidate, place: Place, queue: QueuePass, limits: Sequence[LimitNow]
) -> Outlook:
    """What would come of this candidate, in the order of the service's checks."""
    wanted, behind = quota_class(candidate), tuple[str, ...]()
    waiting = [each for each in queue.places if each.order < place.order and each.blocked_on_limit is None]
    ahead = tuple(other.run_id for other in waiting if other.quota_class == wanted)
    if queue.is_paused(candidate.region):
        until = queue.paused_until[candidate.region]
        reason = f"Vertex AI asked for fewer requests to {candidate.region}, until {until:%H:%M:%S} UTC"
    elif queue.ahead_at_limit(place) is not None:
        behind = tuple(other.run_id for other in queue.places if other.blocked_on_limit in place.limits)
        reason = f"{_earlier_runs_text(behind)} under the same limit"
    elif ahead:
        behind, reason = ahead, f"{_earlier_runs_text(ahead)} for the same machines ({wanted})"
    elif full := next((limit for limit in limits if limit.is_full), None):
        behind, reason = full.holders, f"the limit of {plural(full.jobs, 'job')} {full.text} is reached"
    else:
        return Outlook(verdict="starts", candidate=candidate.number)
    return Outlook(verdict="waits", candidate=candidate.number, reason=reason, behind=behind)


def _earlier_runs_text(runs: Sequence[str]) -> str:
    return "an earlier run waits" if len(runs) == 1 else f"{len(runs)} earlier runs wait"
