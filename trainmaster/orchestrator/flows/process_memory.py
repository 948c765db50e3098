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
OF_STRANGERS = 60
OF_STRANGERS_EVERY = timedelta(seconds=1)
JOBS_KEPT = 10_000
"""A job that is dropped from this list, or that another process knows, counts as unknown once more."""


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
    """The reads that are left. Thread-safe.

    Each run's job has an allowance. All ids that are not known to be a run's job share one, which a run's job gets back:
    entries about invented jobs can use it up, but ends of known jobs are still read.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Allowance] = OrderedDict()
        self._strangers = self._full(OF_STRANGERS, OF_STRANGERS_EVERY)

    def spend(self, job_id: str) -> bool:
        """Whether the job may be read once more now; if so, the read is counted."""
        with self._lock:
            return self._of(job_id).spend(self._clock.now())

    def give_back(self, job_id: str) -> None:
        """Do not count the last read: it failed, and its entry will be redelivered."""
        with self._lock:
            self._of(job_id).give_back()

    def mark_known(self, job_id: str) -> None:
        """The job is a run's: from now on it has its own allowance, from which the last read is taken."""
        with self._lock:
            if job_id not in self._jobs:
                self._strangers.give_back()
                self._jobs[job_id] = self._full(PER_JOB, PER_JOB_EVERY)
                self._jobs[job_id].spend(self._clock.now())
            self._jobs.move_to_end(job_id)
            if len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)

    def _of(self, job_id: str) -> _Allowance:
        return self._jobs.get(job_id, self._strangers)

    def _full(self, most: int, every: timedelta) -> _Allowance:
        return _Allowance(most=most, every=every, left=most, at=self._clock.now())
