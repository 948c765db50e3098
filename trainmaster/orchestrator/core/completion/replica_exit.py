"""How the service reports a replica's exit status, and what the status of a killed or crashed replica means."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_EXITED = re.compile(
    r"\breplica ([a-z0-9-]+) (ran out of memory and )?exited with a non-zero status of (\d{1,9})"
)
"""Source: error messages of failed jobs quoted in public issues, 2021 to 2026."""
_RESTARTED = re.compile(r"\breplica ([a-z0-9-]+) [^\n]{0,200}\bis restarted\b")
_ALL_RESTARTED = re.compile(r"\ball replicas of the job are restarted\b")
"""Both are the local stack's lines: no log of Vertex AI with a restart has been published."""
_NEXT_ATTEMPT = re.compile(r"^Internal error occurred for the current attempt\b")
"""The service's line when it tries the whole job again; the local stack writes it for a job that ran when it stopped."""
RESTART_WORDS = ("restarted", "current attempt")
"""Each line that `is_restart` finds has one of them."""
READ_MAX_CHARS = 500
_KILL = 137
_SIGNALS = {
    132: "crashed (SIGILL): a package was built for another processor",
    134: "aborted (SIGABRT): the lines above its end say why",
    135: "crashed (SIGBUS), usually because /dev/shm or the disk was full",
    136: "crashed (SIGFPE): native code divided by zero",
    _KILL: "killed (SIGKILL), usually because it ran out of memory",
    139: "crashed (SIGSEGV): native code accessed memory that is not its own",
}
"""By exit status: 128 and the number of the signal that ended the program."""
_OUT_OF_MEMORY = "killed (SIGKILL): it ran out of memory"
_TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True, kw_only=True)
class ReplicaExit:
    """A replica and its exit status. `out_of_memory`: the service says that this ended it."""

    replica: str
    status: int
    out_of_memory: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether the program had no chance to write why it ended."""
        return self.status == _KILL

    @property
    def signal_text(self) -> str | None:
        """What ended the program, if it was a signal."""
        if self.out_of_memory and self.was_killed:
            return _OUT_OF_MEMORY
        return _SIGNALS.get(self.status)


def parse_exit(words: str) -> ReplicaExit | None:
    """The exit that the service's words report; None if they give another reason or none."""
    found = _EXITED.search(words)
    if found is None:
        return None
    return ReplicaExit(replica=found[1], status=int(found[3]), out_of_memory=found[2] is not None)


def is_restart(text: str, replica: str | None = None) -> bool:
    """Whether this line of the service says that a replica is restarted, with or without the others: any, or this one."""
    line = text[:READ_MAX_CHARS]
    if _ALL_RESTARTED.search(line) or _NEXT_ATTEMPT.search(line):
        return True
    found = _RESTARTED.search(line)
    return found is not None and replica in (None, found[1])


def restarts_text(service_lines: Iterable[str], replica: str) -> str:
    """`it had been restarted twice`, as far as these lines of the service show it; empty without a restart."""
    count = sum(is_restart(line, replica) for line in service_lines)
    return f"it had been restarted {times_text(count)}" if count else ""


def times_text(count: int) -> str:
    """`once`, `twice`, `3 times`."""
    return _TIMES.get(count, f"{count} times")
