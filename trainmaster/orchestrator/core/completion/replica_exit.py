"""A replica's exit status in the service's words, and what the status of a killed or crashed replica means."""

import re
from dataclasses import dataclass

_EXITED = re.compile(
    r"\breplica ([a-z0-9-]+) (ran out of memory and )?exited with a non-zero status of (\d{1,9})"
)
"""Source: error messages of failed jobs quoted in public issues, 2021 to 2026."""
NEXT_ATTEMPT = "Internal error occurred for the current attempt"
"""Begins the service's line when it tries the whole job again. How it logs the restart of a replica is not published.

Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
"""
RESTARTED = re.compile(rf"\b(?:is|are) restarted\b|{NEXT_ATTEMPT}")
KILL, TERMINATED = 137, 143
_SIGNALS = {
    132: "crashed (SIGILL): a package was built for another processor",
    134: "aborted (SIGABRT): the lines above its end say why",
    135: "crashed (SIGBUS), usually because /dev/shm or the disk was full",
    136: "crashed (SIGFPE): native code divided by zero",
    KILL: "killed (SIGKILL), usually because it ran out of memory",
    139: "crashed (SIGSEGV): native code accessed memory that is not its own",
}
"""By exit status: 128 and the number of the signal that ended the program."""
_OUT_OF_MEMORY = "killed (SIGKILL): it ran out of memory"


@dataclass(frozen=True, kw_only=True)
class ReplicaExit:
    """A replica and its exit status. `out_of_memory`: the service says that this ended it."""

    replica: str
    status: int
    out_of_memory: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether the program had no chance to write why it ended."""
        return self.status == KILL

    @property
    def pool(self) -> int:
        """The number of its worker pool; 0 if the name is of another form."""
        number = self.replica.removeprefix("workerpool").partition("-")[0]
        return int(number) if number.isdigit() else 0

    @property
    def signal_text(self) -> str | None:
        """What ended the program, if it was a signal."""
        if self.out_of_memory and self.was_killed:
            return _OUT_OF_MEMORY
        return _SIGNALS.get(self.status)


def parse_exit(words: str) -> ReplicaExit | None:
    """The exit that the service's words report; None if they give another reason or none."""
    match = _EXITED.search(words)
    if match is None:
        return None
    return ReplicaExit(replica=match[1], status=int(match[3]), out_of_memory=match[2] is not None)
