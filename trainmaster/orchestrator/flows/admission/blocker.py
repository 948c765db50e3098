"""Whether a run that has no job yet may still get one: nobody ended it, the service answers, the policy allows it."""

from dataclasses import dataclass

from trainmaster.orchestrator.core.admission.pricing import priced
from trainmaster.orchestrator.core.admission.waiting import UNANSWERED_MAX
from trainmaster.orchestrator.core.requests.request import Refused, Request, checked_again
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import Services


@dataclass(frozen=True, kw_only=True)
class Blocker:
    """Why the run gets no job any more. `faults` are those of its request under today's policy."""

    failure: Failure | None
    """None: it was ordered to end."""
    faults: tuple[str, ...] = ()


def submission_blocker(services: Services, record: RunRecord) -> Blocker | None:
    """Why a run without a job must not be submitted again; None: it may be."""
    if record.cancel_requested_at is not None:
        return Blocker(failure=None)
    submission = record.submission
    if submission.unanswered >= UNANSWERED_MAX:
        last = submission.tries[-1].outcome if submission.tries else "no reason is on record"
        why = f"Vertex AI gave no answer to {submission.unanswered} submissions in a row; the last: {last}"
        return Blocker(failure=Failure(message=why))
    if record.request is None:
        return None
    standards = services.standards()
    request = checked_again(record.request.document, standards)
    found = priced(request, standards.policy, services.prices) if isinstance(request, Request) else request
    if not isinstance(found, Refused):
        return None
    faults = tuple(str(fault) for fault in found.faults)
    why = f"the request is not allowed any more: {'; '.join(faults)}"
    return Blocker(failure=Failure(message=why), faults=faults)
