"""Error messages as the service words them.

Source: error messages of failed jobs quoted in public issues, 2021 to 2026.
"""

from urllib.parse import quote

from emulators.jobs.cluster import Replica
from emulators.jobs.resource import Job

_KILLED = 137


def non_zero_exit(job: Job, replica: Replica, status: int) -> str:
    """The job's error after a replica ended with a status other than zero."""
    if status == _KILLED:
        what = f"ran out of memory and exited with a non-zero status of {status}(SIGKILL)"
    else:
        what = f"exited with a non-zero status of {status}"
    return f"The replica {replica.name} {what}. {_find_out_more(job, replica)}"


def internal_error(job: Job) -> str:
    """The job's error after the stack ended under it more often than the service tries."""
    return f"Internal error occurred. {_find_out_more(job, None)}"


def _find_out_more(job: Job, replica: Replica | None) -> str:
    wanted = f'resource.type="ml_job" resource.labels.job_id="{job.job_id}"'
    if replica is not None:
        wanted += f' resource.labels.task_name="{replica.name}"'
    return (
        "To find out more about why your job exited please check the logs: "
        f"https://console.cloud.google.com/logs/viewer?project={job.project}"
        f"&resource=ml_job%2Fjob_id%2F{job.job_id}&advancedFilter={quote(wanted, safe='')}"
    )
