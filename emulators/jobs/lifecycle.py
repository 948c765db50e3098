"""What a job's states are, which may follow which, and what a replica's exit means.

    QUEUED ──► PENDING ──► RUNNING ──► SUCCEEDED | FAILED
      │           │           │
      └───────────┴───────────┴──► CANCELLING ──► CANCELLED | SUCCEEDED | FAILED

QUEUED waits for room, PENDING has it, RUNNING has every replica up.
QUEUED and PENDING may also go straight to FAILED.
Cancelling is best effort: a job may end by itself while it is being cancelled.

Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service, read 2026-11.
"""

import signal
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from emulators.jobs.cluster import Replica


class JobState(Enum):
    """The states that a custom job passes through, with the API's numbers."""

    QUEUED = 1
    PENDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELLING = 6
    CANCELLED = 7

    @property
    def api_name(self) -> str:
        """As the API spells it."""
        return f"JOB_STATE_{self.name}"

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self in _TERMINAL


_TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

_NEXT: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.PENDING, JobState.FAILED, JobState.CANCELLING}),
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLING}),
    JobState.RUNNING: frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLING}),
    JobState.CANCELLING: _TERMINAL,
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


def may_follow(before: JobState, after: JobState) -> bool:
    """Whether the service may move a job from `before` to `after`."""
    return after in _NEXT[before]


class Failure(Enum):
    """What kind of end a non-zero status tells of."""

    PERMANENT = "the user's code failed; trying again would fail again"
    CRASH = "the runtime crashed (SIGABRT, SIGSEGV); the job may be tried again"
    LOST = "something outside ended the replica; it may be started again"


_CRASH_STATUSES = frozenset({6, 11, 128 + signal.SIGABRT, 128 + signal.SIGSEGV})
_SIGNALLED = 128

MAX_WORKER_RESTARTS = 5
MAX_JOB_RESTARTS = 3
MAX_INTERNAL_ATTEMPTS = 3


def exit_status(returncode: int) -> int:
    """A container's exit status (0 to 255) from what `subprocess` reports."""
    return _SIGNALLED - returncode if returncode < 0 else returncode


def failure_of(status: int) -> Failure:
    """What a non-zero exit status tells of.

    The service names the crashes and calls ordinary user-code errors permanent, without listing the rest;
    statuses above 128 (ended by a signal from outside: a lost or preempted machine) are taken for the rest.
    """
    if status in _CRASH_STATUSES:
        return Failure.CRASH
    return Failure.LOST if status > _SIGNALLED else Failure.PERMANENT


@dataclass(frozen=True, kw_only=True)
class Succeed:
    """The chief is done, and so is the job."""


@dataclass(frozen=True, kw_only=True)
class CarryOn:
    """Nothing follows from this exit."""


@dataclass(frozen=True, kw_only=True)
class RestartReplica:
    """Start this replica again, under the same address."""

    replica: Replica


@dataclass(frozen=True, kw_only=True)
class RestartJob:
    """End every replica and start all of them again, under the same addresses."""


@dataclass(frozen=True, kw_only=True)
class Fail:
    """The job has failed because `replica` ended with `status`."""

    replica: Replica
    status: int


Decision = Succeed | CarryOn | RestartReplica | RestartJob | Fail


@dataclass(kw_only=True)
class Restarts:
    """Counts restarts of one job and decides what a replica's exit leads to.

    Attributes:
        with_the_job: `restartJobOnWorkerRestart`; `retries_disabled` overrides it.
        retries_disabled: `disableRetries`.
    """

    with_the_job: bool
    retries_disabled: bool
    of_the_job: int = 0
    of_replicas: Counter[Replica] = field(default_factory=Counter)

    def decide(self, replica: Replica, status: int) -> Decision:
        """What follows now that `replica` has exited with `status`; counts the restart it asks for."""
        if status == 0:
            return Succeed() if replica.is_chief else CarryOn()
        match failure_of(status):
            case Failure.PERMANENT:
                return Fail(replica=replica, status=status)
            case Failure.CRASH:
                return self._restart_job(replica, status)
            case Failure.LOST:
                return self._restart_replica(replica, status)

    def _restart_replica(self, replica: Replica, status: int) -> Decision:
        if self.of_replicas[replica] >= MAX_WORKER_RESTARTS:
            return self._restart_job(replica, status)
        self.of_replicas[replica] += 1
        if self.with_the_job and not self.retries_disabled:
            return RestartJob()
        return RestartReplica(replica=replica)

    def _restart_job(self, replica: Replica, status: int) -> Decision:
        if self.retries_disabled or self.of_the_job >= MAX_JOB_RESTARTS:
            return Fail(replica=replica, status=status)
        self.of_the_job += 1
        self.of_replicas.clear()
        return RestartJob()
