"""Exits of replicas, and the kind of failure that each one is."""

import signal
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from trainstack.jobs.resource.replica import JobReplica


class ReplicaFailure(Enum):
    PERMANENT = "the user's code failed; a retry would fail again"
    CRASH = "the runtime crashed (SIGABRT, SIGSEGV); the job may be retried"
    LOST = "the replica was ended from outside; it may be restarted"


_CRASH_STATUSES = frozenset({6, 11, 128 + signal.SIGABRT, 128 + signal.SIGSEGV})
_SIGNALLED = 128
KILLED = 128 + signal.SIGKILL
_CGROUPS, _OWN, _MACHINE = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"), Path("/proc/vmstat")


def exit_status(returncode: int) -> int:
    """A container's exit status (0 to 255) from what `subprocess` reports."""
    return _SIGNALLED - returncode if returncode < 0 else returncode


@dataclass(frozen=True, kw_only=True)
class ReplicaEnd:
    """One replica's end.

    Attributes:
        status: 0 to 255.
        preempted: its machine was preempted on request; `status` has no meaning then.
        out_of_memory: whether the kernel's OOM killer ended it; None if that is unknown.
    """

    replica: JobReplica
    status: int
    preempted: bool = False
    out_of_memory: bool | None = None

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


def oom_kills() -> int | None:
    """The count of OOM kills in this process's control group and on this machine; None if neither can be read.

    A count that has not risen since a replica's start rules out an OOM kill. A risen count makes one likely,
    though another process may have been killed. A replica's group may be outside this process's.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.events), and `oom_kill` in /proc/vmstat,
    which counts the whole machine's.
    """
    counts = [count for path in (*_own_events(), _MACHINE) if (count := _oom_kill_count(path)) is not None]
    return sum(counts) if counts else None


def _own_events() -> list[Path]:
    try:
        groups = _OWN.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    # `0::/path` is the single hierarchy of version 2; lines of version 1 name controllers.
    return [_CGROUPS / line[4:].lstrip("/") / "memory.events" for line in groups if line.startswith("0::/")]


def _oom_kill_count(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
