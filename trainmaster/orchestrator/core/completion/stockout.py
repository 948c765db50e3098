"""A job that ended because the service had no capacity for it: no end of its run, which tries elsewhere, or later."""

import re

from trainmaster.orchestrator.core.runs.job import Job, JobState

EXHAUSTED, UNAVAILABLE = 8, 14
"""google.rpc.Code: https://cloud.google.com/apis/design/errors#handling_errors"""
_OF_THE_REQUEST = (3, 5, 6, 7, 11, 12, 16)
"""Codes that say what is wrong with the request; the words beside them quote it, names of images among them.

9, FAILED_PRECONDITION, is none: a full quota is told with it, too.
"""
_WORDS = re.compile(
    r"Resources are insufficient in region"
    r"|ZONE_RESOURCE_POOL_EXHAUSTED"
    r"|quota metrics exceed",
    re.IGNORECASE,
)
"""What the service says of it, as users of 2026 quote it in public threads; the wording is documented nowhere."""


def stockout_of(job: Job) -> str | None:
    """Why there was no capacity for the job; None for one that ran, or that ended in another way.

    The times decide, then the code, and where that says nothing the words: a program may print any words, but only once it runs.
    """
    if job.state is not JobState.FAILED or job.error is None:
        return None
    if job.start_time is not None or any(trial.start_time is not None for trial in job.trials):
        return None
    if job.error.code in _OF_THE_REQUEST:
        return None
    known = job.error.code in (EXHAUSTED, UNAVAILABLE) or _WORDS.search(job.error.message)
    return job.error.message if known else None
