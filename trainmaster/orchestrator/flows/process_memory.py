"""The memory of one process beside the records: the reads of jobs that entries may cause.

Any account that may write logs, and so any training job, can write entries that look like the service's own. What an
entry leads to is decided by the job itself, but reading it costs time and Vertex AI's quota, so both are limited.
"""

import threading
from collections import OrderedDict
from datetime import datetime, timedelta

from trainmaster.orchestrator.ports.services import Clock

PER_JOB = 6
PER_JOB_EVERY = timedelta(seconds=10)
"""Enough for the start and the end of a job, each twice, and for an end that its state confirms a few seconds later."""
JOBS_KEPT = 10_000
"""A job that is dropped from this list has its whole allowance once more."""


class HintReads:
    """The reads that are left of each job: PER_JOB at most, and one more each PER_JOB_EVERY. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, tuple[float, datetime]] = OrderedDict()

    def spend(self, job_id: str) -> bool:
        """Whether the job may be read once more now; if so, the read is counted."""
        return self._add(job_id, -1)

    def give_back(self, job_id: str) -> None:
        """Do not count the last read: it failed, and its entry will be redelivered."""
        self._add(job_id, 1)

    def _add(self, job_id: str, reads: int) -> bool:
        """Whether so many could be added: there are never less than none."""
        with self._lock:
            now = self._clock.now()
            left, at = self._jobs.pop(job_id, (PER_JOB, now))
            left = min(PER_JOB, left + max(now - at, timedelta(0)) / PER_JOB_EVERY)
            is_enough = left + reads >= 0
            self._jobs[job_id] = (min(PER_JOB, left + reads) if is_enough else left), now
            if len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)
            return is_enough
