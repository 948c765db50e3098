"""How long the run of a request may take, and what it may cost: what `submit` says before it sends it."""

from trainmaster.orchestrator.core.admission.candidates import parse_candidates
from trainmaster.orchestrator.core.admission.cost import estimate_of
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.policy.currency import shown_bound
from trainmaster.orchestrator.core.requests.request import Request


def bounds_of(request: Request, prices: Prices, *, is_local: bool) -> str:
    """A sentence with the most that the dearest of the request and its fallbacks may cost, and the policy's time limit.

    Without a part where a price is unknown, or where the user chose the limit; empty if nothing is left.

    Args:
        request: as the service will accept it.
        prices: of the deployment.
        is_local: whether it runs on this machine, where it costs nothing.
    """
    found = estimate_of(parse_candidates(request.document), prices)
    parts = []
    if request.has_default_timeout:
        parts.append(f"run for {request.document['scheduling']['timeout_s'] / 3600:g} h")
    if found.at_most is not None and not found.unknown:
        cloud = " in the cloud" if is_local else ""
        parts.append(f"cost up to {shown_bound(found.at_most, found.currency)}{cloud}")
    if not parts:
        return ""
    repair = (
        " Set another limit with --set scheduling.timeout_s=SECONDS" if request.has_default_timeout else ""
    )
    return f"It may {' and '.join(parts)}.{repair}"
