"""What a checked request may cost, and whether the policy's caps allow it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from trainmaster.orchestrator.core.admission.candidates import candidates_in
from trainmaster.orchestrator.core.admission.estimate import Estimate
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.request import Refused, Request

if TYPE_CHECKING:
    # Read late, as the price table is: most deployments never ask what a run costs.
    from trainmaster.orchestrator.core.admission.prices import Prices

ReadPrices: TypeAlias = "Callable[[], Prices]"
"""Reads the price table, when it is first needed."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """A sound request that may cost what it would. `estimate` is there where the policy asks for it."""

    request: Request
    estimate: Estimate | None = None


def priced(request: Request, policy: Policy | None, prices: "ReadPrices | None") -> Priced | Refused:
    """The request with what the dearest of its candidates may cost; refused where a cap does not allow that.

    The price table is asked for only where the policy wants to know what runs cost.
    """
    if policy is None or prices is None or not policy.admission.priced:
        return Priced(request=request)
    from trainmaster.orchestrator.core.admission.cost import cost_of

    cost = cost_of(policy.admission.caps, candidates_in(request.document), prices())
    if cost.faults:
        return Refused(faults=_at_written_places(request, cost.faults))
    warnings = {*request.warnings, *_at_written_places(request, cost.warnings)}
    return Priced(request=replace(request, warnings=tuple(sorted(warnings))), estimate=cost.estimate)


def _at_written_places(request: Request, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    return tuple(sorted(replace(each, path=request.written_path(each.path)) for each in faults))
