"""What a run may cost: the estimate, and what it means for the request."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from trainmaster.orchestrator.core.admission.rung import rungs_of
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.policy.currency import money
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.request import Refused, Request

if TYPE_CHECKING:
    # Read late, as the price table is: most deployments never ask what a run costs.
    from trainmaster.orchestrator.core.admission.prices import Prices

ReadPrices: TypeAlias = "Callable[[], Prices]"
"""Reads the price table, when it is first needed."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a job costs in an hour and at most; None where a price is unknown, and `unknown` says of what.

    With both, amounts and `unknown`, a ladder has rungs of either kind: a rung that is unknown may cost more.
    `as_of` is the date of the oldest row of the price table.
    """

    per_hour: Decimal | None
    at_most: Decimal | None
    currency: str
    as_of: str
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for people."""
        if self.per_hour is None or self.at_most is None:
            return f"unknown: no price of {', '.join(self.unknown)}"
        known = f"at most {money(self.at_most, self.currency)}, {money(self.per_hour, self.currency)} an hour"
        return f"{known}; unknown in part: no price of {', '.join(self.unknown)}" if self.unknown else known


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a request's cost means for it."""

    estimate: Estimate
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Priced:
    """A sound request that may cost what it would. `estimate` is there where the policy asks for it."""

    request: Request
    estimate: Estimate | None = None


def priced(request: Request, policy: Policy | None, prices: "ReadPrices | None") -> Priced | Refused:
    """The request with what the dearest of its rungs may cost; refused where a cap does not allow that.

    The price table is asked for only where the policy wants to know what runs cost.
    """
    if policy is None or prices is None or not policy.admission.priced:
        return Priced(request=request)
    from trainmaster.orchestrator.core.admission.cost import cost_of

    cost = cost_of(policy.admission.caps, rungs_of(request.document), prices())
    if cost.faults:
        return Refused(faults=_at_written_places(request, cost.faults))
    warnings = {*request.warnings, *_at_written_places(request, cost.warnings)}
    return Priced(request=replace(request, warnings=tuple(sorted(warnings))), estimate=cost.estimate)


def _at_written_places(request: Request, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    return tuple(sorted(replace(each, path=request.written_path(each.path)) for each in faults))
