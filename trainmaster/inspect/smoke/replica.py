"""One process of the smoke run, and everything that it starts."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

ABORTS_WITHIN_S = 5.0
_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


class Replica:
    """A replica in a process group of its own; `end` leaves nothing of the group."""

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
        self._started_at = time.monotonic()
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def name(self) -> str:
        return f"{self.role}-0"

    @property
    def seconds(self) -> float:
        return (self.ended_at or time.monotonic()) - self._started_at

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        if self._status is None:
            # The ended process is left in place: so its number, which is its group's, is nobody else's until `end`.
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                self._status = seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status
                self.ended_at = time.monotonic()
        return self._status

    def processor_seconds(self) -> float | None:
        """The processor time that the group's living processes have used; None where the machine does not tell."""
        if not _PROC.is_dir():
            return None
        ticks = 0
        for path in _PROC.iterdir():
            if path.name.isdigit() and (fields := _fields(path)) and int(fields[2]) == self._process.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / _TICKS

    def abort(self) -> None:
        """End the group so that Python says where it was: on SIGABRT its fault handler writes every stack."""
        self._signal(signal.SIGABRT)
        deadline = time.monotonic() + ABORTS_WITHIN_S
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self.end()

    def end(self) -> None:
        """Kill the group and wait. What it started and left behind ends too. Safe to call again."""
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
