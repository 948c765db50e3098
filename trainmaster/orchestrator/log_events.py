"""Names of the log lines that metrics count. Unlike the text of `message`, they are a stable interface.

trainmaster/deploy/terraform/plan/monitoring.tf filters on them, and users' metrics and alerts may do so too:
docs/reference/log-lines.md lists them. A new name is an addition; renaming or removing one is a breaking change.
"""

from enum import StrEnum, unique


@unique
class LogEvent(StrEnum):
    """Values of the field `event`. Unrelated to `event_id`, which is a CloudEvent's id."""

    JOB_ENDED = "job_ended"
    """The end of a run's job was recorded. Not logged for a run that ended without a job, or whose job was deleted."""
    RUN_WAITS = "run_waits"
    """A submission was deferred for lack of quota or room, or the job found no capacity before it ran."""
    DEPLOYMENT_REFUSED = "deployment_refused"
    """A submission was refused for something that this deployment lacks; the run waits for its repair."""
    JOB_NOT_STARTED = "job_not_started"
    """A job has been queued for an hour, or for another one: logged once an hour for each such run."""
    RUN_NOT_RECONCILED = "run_not_reconciled"
    """A reconcile pass failed to check a run: logged once for each such run in each pass."""
    RECONCILE_BEHIND = "reconcile_behind"
    """A tick ended before every active run, rule or dropped rule had its turn."""
    QUARANTINED = "quarantined"
    """A rule, or a dropped rule, failed too often, and gets no turn until its file is dropped again."""
    NOTICE_EMAIL = "notice_email"
    """A notice for the addresses of `receiver`: an alert policy of that receiver matches the line, and sends it."""
