"""How a trial ended: JobService calls trials that failed, were cancelled and never reported their metric all INFEASIBLE."""

import re

from trainmaster.orchestrator.core.completion.replica_exit import parse_exit
from trainmaster.orchestrator.core.runs.job import TrialState

FAILED, CANCELLED = "failed", "cancelled"
RAN_TOO_LONG = "ran longer than its timeout of "
"""In the reason of a run or trial whose timeout cancelled its job."""

_CANCELLED = re.compile(
    r"(?:JOB_STATE_)?CANCELL?ED\.?\s*\Z|The trial(?:'s job)? was cancelled\b"
    r"|The job was cancelled before the trial started\b",
    re.IGNORECASE,
)
"""The sentences are the local stack's: none of JobService's has been published."""
_FAILED = re.compile(rf"\AInternal error occurred|\b{RAN_TOO_LONG}")


def was_cancelled(reason: str | None) -> bool:
    """Whether the reason of an infeasible trial says that its job was cancelled, and not that it failed."""
    return bool(_CANCELLED.match(reason or ""))


def trial_word(state: TrialState, reason: str | None, *, has_failure: bool = False) -> str:
    """`failed`, `cancelled` or `infeasible` for the service's INFEASIBLE, else the state in lower case.

    `reason` is the service's, `has_failure` whether the trial's log shows an error. A trial without its metric stays
    `infeasible`, and so does one whose reason is unknown.
    """
    if state is not TrialState.INFEASIBLE:
        return state.value.lower()
    if was_cancelled(reason):
        return CANCELLED
    if has_failure or parse_exit(reason or "") or _FAILED.search(reason or ""):
        return FAILED
    return state.value.lower()


WORDS = (
    *(state.value.lower() for state in TrialState if state is not TrialState.INFEASIBLE),
    FAILED,
    TrialState.INFEASIBLE.value.lower(),
    CANCELLED,
)
"""Every word of `trial_word`, in the order in which they are counted."""
