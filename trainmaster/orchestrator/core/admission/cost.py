"""What a checked request may cost, and whether the policy's caps allow it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trainmaster.orchestrator.core.admission.candidates import Candidate, candidates_in
from trainmaster.orchestrator.core.admission.prices import (
    Prices,
    dearest_role,
    estimate,
    estimate_of,
)
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, json_path, listed
from trainmaster.orchestrator.core.policy.admission import Caps, UnknownPrices
from trainmaster.orchestrator.core.policy.currency import money
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.fallbacks import FALLBACKS
from trainmaster.orchestrator.core.requests.request import Refused, Request
from trainmaster.orchestrator.core.runs.record import Estimate

ReadPrices: TypeAlias = Callable[[], Prices]
"""Reads the price table, when it is first needed: most deployments never ask what a run costs."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """A sound request that may cost what it would. `estimate` is there where the policy asks for it."""

    request: Request
    estimate: Estimate | None = None


def priced(request: Request, policy: Policy | None, prices: ReadPrices | None) -> Priced | Refused:
    """The request with what the dearest of its candidates may cost; refused where a cap does not allow that.

    The price table is asked for only where the policy wants to know what runs cost. A price that is unknown is a
    warning where there is a cap of cost, and a fault where the policy says so.
    """
    if policy is None or prices is None or not policy.admission.priced:
        return Priced(request=request)
    caps, candidates, table = policy.admission.caps, candidates_in(request.document), prices()
    faults = _at_written_places(request, _faults(caps, candidates, table))
    if faults:
        return Refused(faults=faults)
    warnings = {*request.warnings, *_at_written_places(request, _warnings(caps, candidates, table))}
    sound = replace(request, warnings=tuple(sorted(warnings)))
    return Priced(request=sound, estimate=estimate_of(candidates, table))


def _at_written_places(request: Request, faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(replace(each, path=request.written_path(each.path)) for each in faults))


def _faults(caps: Caps, candidates: Sequence[Candidate], prices: Prices) -> Iterator[Fault]:
    told: set[str] = set()
    refuses = caps.of_cost and caps.unknown_prices is UnknownPrices.REFUSE
    for candidate in candidates:
        found = estimate(candidate.spec, candidate.region, prices)
        fault = _too_dear(caps, candidate, found, prices)
        if refuses and found.unknown:
            repair = "ask for something else, or have its price added to prices.yaml"
            fault = _unknown(candidate, found, repair)
        if fault is not None and fault.path not in told:
            told.add(fault.path)
            yield fault


def _warnings(caps: Caps, candidates: Sequence[Candidate], prices: Prices) -> Iterator[Fault]:
    for candidate in candidates if caps.of_cost else ():
        found = estimate(candidate.spec, candidate.region, prices)
        if found.unknown:
            yield _unknown(candidate, found, "the caps of cost cannot hold it")


def _unknown(candidate: Candidate, found: Estimate, repair: str) -> Fault:
    return Fault(
        path=json_path((*_place(candidate), "cluster")),
        problem=f"its cost is unknown: no price of {listed(found.unknown)}",
        repair=repair,
    )


def _too_dear(caps: Caps, candidate: Candidate, found: Estimate, prices: Prices) -> Fault | None:
    cap = min((each for each in (caps.cost_per_run, caps.cost_per_day) if each is not None), default=None)
    if cap is None or found.at_most is None or found.per_hour is None or found.at_most <= cap:
        return None
    name = "cost_per_run" if cap == caps.cost_per_run else "cost_per_day"
    allowed = f"at most {money(cap, caps.currency)}, by the policy's {name}"
    cost = f"{money(found.at_most, found.currency)}, at {money(found.per_hour, found.currency)} an hour"
    if candidate.spec.scheduling.timeout_s is None and candidate.number == 0:
        return Fault(
            path="$.scheduling.timeout_s",
            problem="missing: without it the job may run for 7 days, and that may cost too much",
            found=cost,
            allowed=allowed,
            repair="give scheduling.timeout_s, the longest time that the job needs",
        )
    role = dearest_role(candidate.spec, candidate.region, prices)
    return Fault(
        path=json_path((*_place(candidate), "cluster", role)),
        problem=f"the run may cost too much, most of it for {role}",
        found=cost,
        allowed=allowed,
        repair="give a shorter scheduling.timeout_s, ask for fewer replicas or smaller machines, "
        f"or have {name} raised in the policy",
    )


def _place(candidate: Candidate) -> tuple[PathPart, ...]:
    return () if candidate.number == 0 else (FALLBACKS, candidate.number - 1)


def currency_problem(caps: Caps, prices: Prices) -> str | None:
    """Why the table cannot serve the caps, if so: amounts of two currencies cannot be compared."""
    if not caps.of_cost or caps.currency == prices.currency:
        return None
    return (
        f"the prices are in {prices.currency}, and the policy's caps in {caps.currency}; "
        "write both in one currency"
    )
