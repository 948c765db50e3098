"""The replicas of a smoke run: each a process with everything that it starts, watched until it is over."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

POLL_S = 0.1
LOOK_EACH_S = 1.0
BUSY_SHARE = 0.02  # of one processor: a process that waits for a peer uses less, one that computes much more
ABORTS_WITHIN_S = 5.0
_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


class SmokeReplica:
    """A replica in its own process group; `end` ends every process of the group."""

    def __init__(
        self,
        role: str,
        command: Sequence[str],
        *,
        cwd: Path,
        variables: Mapping[str, str],
        out: Path,
        err: Path,
    ) -> None:
        """Start `command`.

        Raises:
            OSError: there is no such program.
        """
        self.role = role
        self.ended_at: float | None = None
        self._status: int | None = None
        self._started_at = self._looked_at = self._worked_at = time.monotonic()
        self._used_s = 0.0
        with out.open("wb") as stdout, err.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        return (self.ended_at or time.monotonic()) - self._started_at

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        if self._status is None:
            # The ended process is not reaped until `end`, so that no other process or group can get its id.
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                self._status = seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status
                self.ended_at = time.monotonic()
        return self._status

    def idle_s(self) -> float:
        """How long the group has used hardly any processor time; sampled once a second."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EACH_S:
            used_s = self._processor_seconds()
            if used_s is None or used_s - self._used_s > BUSY_SHARE * (now - self._looked_at):
                self._worked_at = now
            self._used_s, self._looked_at = used_s or 0.0, now
        return now - self._worked_at

    def _processor_seconds(self) -> float | None:
        """The processor time of the group's living processes; None if the machine does not report it."""
        if not _PROC.is_dir():
            return None
        processes = map(_fields, _PROC.glob("[0-9]*"))
        group = [fields for fields in processes if fields and int(fields[2]) == self._process.pid]
        return sum(int(fields[11]) + int(fields[12]) for fields in group) / _TICKS

    def abort(self) -> None:
        """End the group so that Python says where it was: on SIGABRT its fault handler writes every stack."""
        self._signal(signal.SIGABRT)
        deadline = time.monotonic() + ABORTS_WITHIN_S
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self.end()

    def end(self) -> None:
        """Kill the group, including processes it left behind, and wait. Safe to call again."""
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._status = self._process.returncode if self._status is None else self._status

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _fields(process: Path) -> list[str]:
    """The fields of /proc/PID/stat behind the name; empty for a process that ended meanwhile."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


class State(Enum):
    """How a replica ended."""

    ENDED = "ended by itself"
    STOPPED = "stopped, as the service stops replicas once the chief has succeeded"
    HUNG = "waited without using the processor"
    BUSY = "was still running when the time was up"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds: for the whole run, without work, to end behind the chief, and to end after a peer failed."""

    whole_s: float
    idle_s: float = 60
    behind_chief_s: float = 30
    after_failure_s: float = 60


def watch(replicas: Sequence[SmokeReplica], limits: Limits) -> dict[str, State]:
    """How each replica ended, by role; none runs any more. The first replica is the chief."""
    stopped: dict[str, State] = {}
    while running := [
        replica for replica in replicas if replica.poll() is None and replica.role not in stopped
    ]:
        over = [(replica, _end_due(replica, replicas, limits)) for replica in running]
        for replica, state in over:
            if state is not None:
                stopped[replica.role] = state
                replica.end() if state is State.STOPPED else replica.abort()
        time.sleep(POLL_S)
    replicas[0].poll()
    return {replica.role: stopped.get(replica.role, State.ENDED) for replica in replicas}


def _end_due(replica: SmokeReplica, replicas: Sequence[SmokeReplica], limits: Limits) -> State | None:
    """Why a running replica must be ended now; None if it may continue."""
    now, idle_s = time.monotonic(), replica.idle_s()
    chief, *_ = replicas
    if chief.poll() == 0 and chief.ended_at is not None and now - chief.ended_at > limits.behind_chief_s:
        return State.STOPPED
    failed = [
        peer.ended_at
        for peer in replicas
        if peer is not replica and peer.poll() and peer.ended_at is not None
    ]
    if idle_s > limits.idle_s or (failed and now - min(failed) > limits.after_failure_s):
        return State.HUNG
    if replica.seconds > limits.whole_s:
        long_s = max(2 * LOOK_EACH_S, min(limits.idle_s / 4, limits.whole_s / 2))
        return State.HUNG if idle_s > long_s else State.BUSY
    return None
