"""Whether a request may cost what it would: its ladder against the policy's caps of cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.orchestrator.core.admission.estimate import Estimate
from trainmaster.orchestrator.core.admission.prices import Prices, dearest_role, estimate, estimate_of
from trainmaster.orchestrator.core.admission.rung import Rung
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, json_path, listed
from trainmaster.orchestrator.core.policy.admission import Caps, UnknownPrices
from trainmaster.orchestrator.core.policy.currency import money
from trainmaster.orchestrator.core.requests.fallbacks import FALLBACKS


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a request's cost means for it."""

    estimate: Estimate
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()


def cost_of(caps: Caps, ladder: Sequence[Rung], prices: Prices) -> Cost:
    """The estimate of the ladder, and every rung that costs more than a cap allows, with its path.

    A price that is unknown is a warning where there is a cap of cost, and a fault where the policy says so.
    """
    return Cost(
        estimate=estimate_of(ladder, prices),
        faults=tuple(_faults(caps, ladder, prices)),
        warnings=tuple(_warnings(caps, ladder, prices)),
    )


def _faults(caps: Caps, ladder: Sequence[Rung], prices: Prices) -> Iterator[Fault]:
    told: set[str] = set()
    refuses = caps.of_cost and caps.unknown_prices is UnknownPrices.REFUSE
    for rung in ladder:
        found = estimate(rung.spec, rung.region, prices)
        fault = _too_dear(caps, rung, found, prices)
        if refuses and found.unknown:
            repair = "ask for something else, or have its price added to prices.yaml"
            fault = _unknown(rung, found, repair)
        if fault is not None and fault.path not in told:
            told.add(fault.path)
            yield fault


def _warnings(caps: Caps, ladder: Sequence[Rung], prices: Prices) -> Iterator[Fault]:
    for rung in ladder if caps.of_cost else ():
        found = estimate(rung.spec, rung.region, prices)
        if found.unknown:
            yield _unknown(rung, found, "the caps of cost cannot hold it")


def _unknown(rung: Rung, found: Estimate, repair: str) -> Fault:
    return Fault(
        path=json_path((*_place(rung), "cluster")),
        problem=f"its cost is unknown: no price of {listed(found.unknown)}",
        repair=repair,
    )


def _too_dear(caps: Caps, rung: Rung, found: Estimate, prices: Prices) -> Fault | None:
    cap = min((each for each in (caps.cost_per_run, caps.cost_per_day) if each is not None), default=None)
    if cap is None or found.at_most is None or found.per_hour is None or found.at_most <= cap:
        return None
    name = "cost_per_run" if cap == caps.cost_per_run else "cost_per_day"
    allowed = f"at most {money(cap, caps.currency)}, by the policy's {name}"
    cost = f"{money(found.at_most, found.currency)}, at {money(found.per_hour, found.currency)} an hour"
    if rung.spec.scheduling.timeout_s is None and rung.number == 0:
        return Fault(
            path="$.scheduling.timeout_s",
            problem="missing: without it the job may run for 7 days, and that may cost too much",
            found=cost,
            allowed=allowed,
            repair="give scheduling.timeout_s, the longest time that the job needs",
        )
    role = dearest_role(rung.spec, rung.region, prices)
    return Fault(
        path=json_path((*_place(rung), "cluster", role)),
        problem=f"the run may cost too much, most of it for {role}",
        found=cost,
        allowed=allowed,
        repair="give a shorter scheduling.timeout_s, ask for fewer replicas or smaller machines, "
        f"or have {name} raised in the policy",
    )


def _place(rung: Rung) -> tuple[PathPart, ...]:
    return () if rung.number == 0 else (FALLBACKS, rung.number - 1)


def currency_problem(caps: Caps, prices: Prices) -> str | None:
    """Why the table cannot serve the caps, if so: amounts of two currencies cannot be compared."""
    if not caps.of_cost or caps.currency == prices.currency:
        return None
    return (
        f"the prices are in {prices.currency}, and the policy's caps in {caps.currency}; "
        "write both in one currency"
    )
