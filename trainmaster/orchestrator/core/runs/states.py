"""The states of a run and the legal moves between them.

              an event
                 │
        faulty ┌─┴─┐ sound
               ▼   ▼      no room           given up
        rejected  reserved ───────▶ waiting ────────┐
                   │  │  │  ◀┄┄┄┄┄┄┄┄ │ lease       │
       taken over, │  │  │            │ taken       ▼
     lease expired └▶─┘  ├────────────┼─────────▶ failed
                         ▼            │ refused
                     submitted ◀──────┘ job created, or found and adopted
                         │
                         ▼
                      running
                         │ the job's own state, read from the service
         ┌───────────────┼────────────────┬ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┐
         ▼               ▼                ▼                    ▼
     succeeded        failed          cancelled    expired, partially_succeeded
                                                   (the service's for other jobs)

- reserved: the record exists, its lease says who may submit and until when.
- waiting: there is no room; it is tried again when `not_before` has passed, or a run has ended.
- submitted goes back to waiting when its job ended for want of capacity before it ran, and only then: the job
  is given up, and the next candidate is due. Each time begins another round.
- Any state that has not ended may become an end at once: the job's end can be told before its
  submission was written down.
- A run without a job is cancelled at once by an order, or by a rule that replaces it.
- An end is final.
"""

from collections.abc import Mapping
from enum import StrEnum

from trainmaster.orchestrator.core.runs.job import JobState


class RunState(StrEnum):
    RESERVED = "reserved"
    WAITING = "waiting"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    PARTIALLY_SUCCEEDED = "partially_succeeded"
    REJECTED = "rejected"


ENDS = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.CANCELLED,
        RunState.EXPIRED,
        RunState.PARTIALLY_SUCCEEDED,
        RunState.REJECTED,
    }
)
_JOB_ENDS = ENDS - {RunState.REJECTED}
LEGAL_MOVES: Mapping[RunState, frozenset[RunState]] = {
    RunState.RESERVED: _JOB_ENDS | {RunState.WAITING, RunState.SUBMITTED, RunState.RUNNING},
    RunState.WAITING: _JOB_ENDS | {RunState.SUBMITTED, RunState.RUNNING},
    RunState.SUBMITTED: _JOB_ENDS | {RunState.RUNNING, RunState.WAITING},
    RunState.RUNNING: _JOB_ENDS,
    **{end: frozenset() for end in ENDS},
}
PROGRESS: Mapping[RunState, int] = {
    RunState.RESERVED: 0,
    RunState.WAITING: 1,
    RunState.SUBMITTED: 2,
    RunState.RUNNING: 3,
    **dict.fromkeys(ENDS, 4),
}
"""How far a run is; what is told of a run never goes back to a smaller number within one round."""
END_OF: Mapping[JobState, RunState] = {
    JobState.SUCCEEDED: RunState.SUCCEEDED,
    JobState.FAILED: RunState.FAILED,
    JobState.CANCELLED: RunState.CANCELLED,
    JobState.EXPIRED: RunState.EXPIRED,
    JobState.PARTIALLY_SUCCEEDED: RunState.PARTIALLY_SUCCEEDED,
}
"""The ends; a job in any other state goes on."""
OVER = frozenset({*END_OF, JobState.CANCELLING})
"""A job in one of these has ended, or ends without being asked again."""
