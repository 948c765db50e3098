"""How a replica ended, and what kind of end that is."""

import signal
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from trainmaster.local.jobs.resource.replica import Replica


class Failure(Enum):
    PERMANENT = "the user's code failed; trying again would fail again"
    CRASH = "the runtime crashed (SIGABRT, SIGSEGV); the job may be tried again"
    LOST = "something outside ended the replica; it may be started again"


_CRASH_STATUSES = frozenset({6, 11, 128 + signal.SIGABRT, 128 + signal.SIGSEGV})
_SIGNALLED = 128
KILLED = 128 + signal.SIGKILL
_CGROUPS, _OWN, _MACHINE = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"), Path("/proc/vmstat")


def exit_status(returncode: int) -> int:
    """A container's exit status (0 to 255) from what `subprocess` reports."""
    return _SIGNALLED - returncode if returncode < 0 else returncode


@dataclass(frozen=True, kw_only=True)
class Exit:
    """One replica's end.

    Attributes:
        status: 0 to 255.
        preempted: its machine was taken away on request; what it ended with says nothing then.
        out_of_memory: whether the kernel ended it for want of memory; None where that cannot be known.
    """

    replica: Replica
    status: int
    preempted: bool = False
    out_of_memory: bool | None = None

    @property
    def is_success(self) -> bool:
        """Whether this is the job's success: the chief is done."""
        return self.replica.is_chief and self.status == 0 and not self.preempted

    @property
    def failure(self) -> Failure | None:
        """What went wrong; None for a replica that is done.

        The service names the crashes and calls ordinary user-code errors permanent, without listing the rest;
        statuses above 128 (ended by a signal from outside: a lost or preempted machine) are taken for the rest.
        """
        if self.preempted:
            return Failure.LOST
        if self.status == 0:
            return None
        if self.status in _CRASH_STATUSES:
            return Failure.CRASH
        return Failure.LOST if self.status > _SIGNALLED else Failure.PERMANENT


def oom_kills() -> int | None:
    """How often the kernel ended a process for want of memory: in our own control group, else on this machine.

    None where neither can be read.

    A count that has not risen since a replica was started rules out that the kernel ended it.
    One that has risen makes it likely: another process may have been the one.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.events), and `oom_kill` in /proc/vmstat,
    which counts the whole machine's.
    """
    for path in (*_own_events(), _MACHINE):
        if (found := _counted(path)) is not None:
            return found
    return None


def _own_events() -> list[Path]:
    try:
        groups = _OWN.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    # `0::/path` is the one hierarchy of version 2; lines of version 1 name controllers.
    return [_CGROUPS / line[4:].lstrip("/") / "memory.events" for line in groups if line.startswith("0::/")]


def _counted(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
