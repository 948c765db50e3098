"""Whether a job that had started was lost, not failed: another job of the same run may then do better.

The exit status in the service's message decides first, then the code, and last the words: a program cannot write any of
them but its status.
"""

from trainmaster.orchestrator.core.completion.explanation import without_log_link
from trainmaster.orchestrator.core.completion.outcome import EXHAUSTED, OF_THE_REQUEST, UNAVAILABLE
from trainmaster.orchestrator.core.completion.replica_exit import KILL, TERMINATED, parse_exit
from trainmaster.orchestrator.core.requests.spec import Scheduling
from trainmaster.orchestrator.core.runs.job import Job, JobLoss, JobState, RetryOn

_OF_THE_SERVICE = (EXHAUSTED, 10, 13, UNAVAILABLE)
"""google.rpc.Code: RESOURCE_EXHAUSTED, ABORTED, INTERNAL and UNAVAILABLE."""
_STOPPED = (1, 4)
"""CANCELLED and DEADLINE_EXCEEDED: the job ended as it was meant to."""
_WORDS = "Internal error occurred"
"""https://cloud.google.com/vertex-ai/docs/training/understanding-training-service"""


def loss_of(job: Job, scheduling: Scheduling) -> JobLoss | None:
    """How the job was lost; None for one that never started, has not failed, or that its program or request failed.

    `scheduling` is the job's own. A Spot VM that is taken away ends its replica by a signal, or the job with any code.
    A killed replica on a Spot VM ran out of memory only if the service says so.
    """
    if job.state is not JobState.FAILED or job.error is None or not job.has_started:
        return None
    code, words = job.error.code, without_log_link(job.error.message)
    exited = parse_exit(words)
    if exited is not None:
        if exited.was_killed and (exited.out_of_memory or not scheduling.spot):
            return JobLoss(why=RetryOn.OUT_OF_MEMORY, reason=words, pool=exited.pool)
        is_taken = scheduling.spot and exited.status in (KILL, TERMINATED)
        return JobLoss(why=RetryOn.PREEMPTION, reason=words) if is_taken else None
    if code in (*OF_THE_REQUEST, *_STOPPED):
        return None
    if scheduling.spot:
        return JobLoss(why=RetryOn.PREEMPTION, reason=words)
    is_of_service = code in _OF_THE_SERVICE or _WORDS in words
    return JobLoss(why=RetryOn.INFRASTRUCTURE, reason=words) if is_of_service else None
