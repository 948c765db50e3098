"""Exits of replicas, and the kind of failure that each one is."""

import signal
from dataclasses import dataclass
from enum import Enum

from trainstack.jobs.resource.job import JobReplica


class ReplicaFailure(Enum):
    PERMANENT = "the user's code failed; a retry would fail again"
    CRASH = "the runtime crashed (SIGABRT, SIGSEGV); the job may be retried"
    LOST = "the replica was ended from outside; it may be restarted"


_CRASH_STATUSES = frozenset({6, 11, 128 + signal.SIGABRT, 128 + signal.SIGSEGV})
_SIGNALLED = 128
KILLED = 128 + signal.SIGKILL


def exit_status(returncode: int) -> int:
    """A container's exit status (0 to 255) from what `subprocess` reports."""
    return _SIGNALLED - returncode if returncode < 0 else returncode


@dataclass(frozen=True, kw_only=True)
class ReplicaEnd:
    """One replica's end.

    Attributes:
        status: 0 to 255.
        preempted: its machine was preempted on request; `status` has no meaning then.
    """

    replica: JobReplica
    status: int
    preempted: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the chief finished, which is the job's success."""
        return self.replica.is_chief and self.status == 0 and not self.preempted

    @property
    def failure(self) -> ReplicaFailure | None:
        """The kind of failure; None for a replica that finished.

        The service's documentation names the crashes and calls ordinary user-code errors permanent. It does
        not list the rest; here these are statuses above 128 (a signal from outside: a lost or preempted
        machine).
        """
        if self.preempted:
            return ReplicaFailure.LOST
        if self.status == 0:
            return None
        if self.status in _CRASH_STATUSES:
            return ReplicaFailure.CRASH
        return ReplicaFailure.LOST if self.status > _SIGNALLED else ReplicaFailure.PERMANENT
