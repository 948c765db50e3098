"""Error messages in the service's wording.

Source: error messages of failed jobs quoted in public issues, 2021 to 2026.
"""

from urllib.parse import quote

from trainstack.injections.active import Injection
from trainstack.jobs.replicas.exits import KILLED, ReplicaEnd
from trainstack.jobs.resource.job import JobReplica, VertexJob


def non_zero_exit(job: VertexJob, last: ReplicaEnd) -> str:
    """The job's error after a replica ended with a status other than zero.

    The service attributes every SIGKILL to the OOM killer, whichever process sent it.
    """
    what = f"exited with a non-zero status of {last.status}"
    if last.status == KILLED and not last.preempted:
        what = f"ran out of memory and {what}(SIGKILL)"
    return f"The replica {last.replica.name} {what}. {_find_out_more(job, last.replica)}"


def waited_too_long(job: VertexJob) -> str:
    """The error of a job whose `maxWaitDuration` passed before there was capacity.

    The second sentence is the project's.
    """
    waited_s = job.max_wait.total_seconds() if job.max_wait else 0.0
    return (
        f"Resources are insufficient in region: {job.location}. "
        f"None became available within the job's maxWaitDuration of {waited_s:g}s."
    )


def out_of_stock(job: VertexJob) -> str:
    """The error of a job for which the region had no machines, in the service's wording."""
    return f"Resources are insufficient in region: {job.location}. Please try a different region."


def ran_too_long(job: VertexJob) -> str:
    """The error of a job that exceeded its `timeout`. The words after the code's name are the project's."""
    return f"CANCELED: the job ran longer than its timeout of {job.timeout.total_seconds():g} s."


def restarts(cause: ReplicaEnd, *, everyone: bool) -> str:
    """The project's own log line: why this replica, or every one, is restarted."""
    how = "was preempted and exited" if cause.preempted else "exited"
    what = "; all replicas of the job are restarted" if everyone else " and is restarted"
    return f"The replica {cause.replica.name} {how} with status {cause.status}{what}."


def preempts(replica: JobReplica, grace_s: float) -> str:
    """The project's own log line: why a replica receives SIGTERM."""
    return f"The machine of replica {replica.name} is being preempted; its program has {grace_s:g} s to exit."


def internal_error(job: VertexJob, fault: Exception | Injection) -> str:
    """The error of a job that a fault of the job service or an injection ended. The second sentence is the project's."""
    why = f"The local stack failed, and its own log has more: {type(fault).__name__}: {fault!s:.300}."
    if isinstance(fault, Injection):
        why = f"The injection {fault.name!r} struck here."
    return f"Internal error occurred. {why} {_find_out_more(job, None)}"


def preemption_text(job: VertexJob) -> str:
    """The error of a job whose machines were all preempted.

    Source: "the … job fails with a STOCKOUT error", https://cloud.google.com/vertex-ai/docs/predictions/use-spot-vms; the
    words are the project's.
    """
    return f"STOCKOUT: the machines of all replicas were preempted in region: {job.location}."


def stack_ended(job: VertexJob) -> str:
    """The error of a job that is not started again after its stack ended. The second sentence is the project's."""
    why = f"The local stack was killed or crashed during each of its {job.attempts} attempts."
    if job.spec.scheduling.disable_retries:
        why = "The local stack ended while this job ran, and its disableRetries forbids a second attempt."
    return f"Internal error occurred. {why} {_find_out_more(job, None)}"


def _find_out_more(job: VertexJob, replica: JobReplica | None) -> str:
    wanted = f'resource.type="ml_job" resource.labels.job_id="{job.job_id}"'
    if replica is not None:
        wanted += f' resource.labels.task_name="{replica.name}"'
    return (
        "To find out more about why your job exited please check the logs: "
        f"https://console.cloud.google.com/logs/viewer?project={job.project}"
        f"&resource=ml_job%2Fjob_id%2F{job.job_id}&advancedFilter={quote(wanted, safe='')}"
    )
