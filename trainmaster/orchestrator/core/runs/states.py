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
                         ▼     lost and retried, or given up when it started
                      running ──────────────▶ waiting
                         │ the job's own state, read from the service
         ┌───────────────┼────────────────┬ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┐
         ▼               ▼                ▼                    ▼
     succeeded        failed          cancelled    expired, partially_succeeded
                                                   (the service's for other jobs)

- reserved: the record exists; its lease says which attempt may submit, and until when.
- waiting: there is no room. The run is tried again after `not_before`, or when another run ends.
- submitted returns to waiting when its job ended for lack of capacity before it ran, and running when its job was lost
  and the request asks for retries. That job is abandoned, and another round begins, with the next or the same candidate.
- a job that has not started by its deadline is given up if a later candidate exists. The record says so first
  (`submission.giving_up`), then the job is cancelled, by every pass again; the state stays submitted until the job is
  read in an end state, and only then another one is submitted. If it starts first, it is kept, and the run is running;
  if our cancellation ends it nevertheless, running returns to waiting. An order to cancel the run goes first.
- Any active state may move to an end directly: the job's end may be reported before its submission is recorded.
- An order, or a rule that replaces the run, cancels a run without a job at once.
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
    RunState.RUNNING: _JOB_ENDS | {RunState.WAITING},
    **{end: frozenset() for end in ENDS},
}
PROGRESS: Mapping[RunState, int] = {
    RunState.RESERVED: 0,
    RunState.WAITING: 1,
    RunState.SUBMITTED: 2,
    RunState.RUNNING: 3,
    **dict.fromkeys(ENDS, 4),
}
"""How far a run is. Within one round, what is reported about it never returns to a smaller number."""
END_OF: Mapping[JobState, RunState] = {
    JobState.SUCCEEDED: RunState.SUCCEEDED,
    JobState.FAILED: RunState.FAILED,
    JobState.CANCELLED: RunState.CANCELLED,
    JobState.EXPIRED: RunState.EXPIRED,
    JobState.PARTIALLY_SUCCEEDED: RunState.PARTIALLY_SUCCEEDED,
}
"""The states in which a job has ended, each with the run's; in any other the job is still active."""
OVER = frozenset({*END_OF, JobState.CANCELLING})
"""A job in one of these states has ended, or is about to without a further request."""
