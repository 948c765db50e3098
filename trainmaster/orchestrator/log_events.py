"""Names of the log lines that metrics count. They are a stable interface, unlike the prose of `message`.

trainmaster/deploy/terraform/plan/monitoring.tf filters on them, and so may the metrics and alerts of users:
docs/how-to/runbook.md lists them. A new name is an addition; renaming or removing one is a breaking change.
"""

from enum import StrEnum, unique


@unique
class LogEvent(StrEnum):
    """Values of the field `event`. It names the line, and has no relation to `event_id`, a CloudEvent's id."""

    JOB_ENDED = "job_ended"
    """The end of a run's job was recorded. A run that ended without a job, or whose job was deleted, has no such line."""
    RUN_WAITS = "run_waits"
    """A submission was put off for lack of quota or room, or the job found no capacity before it ran."""
    RUN_NOT_RECONCILED = "run_not_reconciled"
    """A reconcile pass failed to look at a run: each reconcile pass says so once for each such run."""
    RECONCILE_BEHIND = "reconcile_behind"
    """A reconcile pass ended before it had looked at every active run."""
