"""The memory of one process beside the records: the reads of jobs that entries may cause.

Any account that may write logs, and so any training job, can write entries that look like the service's own. What an
entry leads to is decided by the job itself, but reading it costs time and Vertex AI's quota, so both are limited.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.orchestrator.ports.services import Clock

PER_JOB = 6
PER_JOB_EVERY = timedelta(seconds=10)
"""Enough for the start and the end of a job, each twice, and for an end that its state confirms a few seconds later."""
JOBS_KEPT = 10_000
"""A job that is dropped from this list has its whole allowance once more."""


@dataclass(kw_only=True)
class _Allowance:
    """`left` reads of `most` at `at`; one more each `every`."""

    most: int
    every: timedelta
    left: float
    at: datetime

    def spend(self, now: datetime) -> bool:
        self.left = min(self.most, self.left + max(now - self.at, timedelta(0)) / self.every)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def give_back(self) -> None:
        self.left = min(self.most, self.left + 1)


class HintReads:
    """The reads that are left of each job. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Allowance] = OrderedDict()

    def spend(self, job_id: str) -> bool:
        """Whether the job may be read once more now; if so, the read is counted."""
        with self._lock:
            return self._of(job_id).spend(self._clock.now())

    def give_back(self, job_id: str) -> None:
        """Do not count the last read: it failed, and its entry will be redelivered."""
        with self._lock:
            self._of(job_id).give_back()

    def _of(self, job_id: str) -> _Allowance:
        if job_id not in self._jobs:
            self._jobs[job_id] = _Allowance(
                most=PER_JOB, every=PER_JOB_EVERY, left=PER_JOB, at=self._clock.now()
            )
        self._jobs.move_to_end(job_id)
        if len(self._jobs) > JOBS_KEPT:
            self._jobs.popitem(last=False)
        return self._jobs[job_id]
