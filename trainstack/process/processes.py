"""Starts child processes, with a watcher that survives a crash of this process."""

import asyncio
import contextlib
import hashlib
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from trainstack.process import family
from trainstack.process.family import CLEAN, IGNORED, MARK
from trainstack.process.output import OnLines, Output, OutputStream, readable

NUMBER_BYTES = 8
"""Of a process id, and of an exit code, in the pipe of a fork server."""


class ForkedProcess:
    """A process whose parent is the server, as `Popen` would have it; `status` is readable when it has ended, or the server."""

    def __init__(self, pid: int, status: int, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout, self.stderr, self._status = stdout, stderr, status

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def wait(self) -> int:
        """The exit code; that of SIGKILL if the server ended first. Blocks until `status` is readable."""
        if self.returncode is None:
            number = os.read(self._status, NUMBER_BYTES)
            self.returncode = int.from_bytes(number, signed=True) if number else -signal.SIGKILL
        return self.returncode

    def _send(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)


class Child:
    """A started process. Created by `ProcessGuard` in a running event loop.

    asyncio's subprocesses are not used: their `wait` also waits for the pipes, which a grandchild in another
    session may keep open indefinitely.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes] | ForkedProcess",
        *,
        end: int,
        mark: str,
        on_lines: OnLines | None,
    ) -> None:
        """Start reading the output and waiting for the end of `process`, which carries `mark`.

        `end` is a descriptor that is readable when the process has ended; it is closed then.
        """
        self._process = process
        self._mark, self._since = mark, family.started(process.pid)
        self.ended_at: float | None = None
        """When the end of the process was noticed (`time.monotonic`), before `wait` returns; None until then."""
        self.cpu_s: float | None = None
        """The processor time of it and of what it waited for; None until its end, or if it is unknown."""
        self._output: Output | None = None
        if on_lines is not None and process.stdout is not None and process.stderr is not None:
            pipes = {OutputStream.STDOUT: process.stdout, OutputStream.STDERR: process.stderr}
            self._output = Output(pipes, on_lines)
        self._ended = asyncio.create_task(self._end(end))

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its session and process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As in `subprocess`: the negative signal number for a process ended by a signal."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until the process and its descendants have ended and all output is handled; return the exit code."""
        return await asyncio.shield(self._ended)

    async def stop(self, *, grace_s: float) -> int:
        """End the process: SIGTERM, then SIGKILL after `grace_s` seconds.

        Safe to call twice, and after its end.
        """
        self._process.terminate()
        done, _ = await asyncio.wait({self._ended}, timeout=grace_s)
        if not done:
            self._process.kill()
        return await self.wait()

    async def _end(self, end: int) -> int:
        await readable(end)
        self.ended_at = time.monotonic()
        if stat := family.stat_of(self.pid):  # which only a process that is not waited for yet has
            self.cpu_s = stat.cpu_s
        code = self._process.wait()
        os.close(end)
        # A container ends with its first process; end what that process left running.
        await asyncio.to_thread(family.end, self._mark, grace_s=0.0, since=self._since)
        if self._output is not None:
            await self._output.drain()
        return code


SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of a child that must not inherit this shell's."""

_WATCHER = "trainstack.process.guard"
_IMPORTED_FROM = Path(__file__).resolve().parents[_WATCHER.count(".")]
_WATCHER_END_S = 30.0


class ProcessGuard:
    """Child processes that end with this process, however it ends: return, Ctrl-C, SIGTERM, SIGKILL, a crash.

    Covers their descendants, even in another session. Not covered: a program that clears its environment
    *and* whose parent is already gone, unless `trainstack.sandbox` runs it. Linux only, because the
    processes are found through /proc.
    """

    def __init__(self, *, grace_s: float = 2.0) -> None:
        """Start the watcher.

        Args:
            grace_s: seconds between SIGTERM and SIGKILL for leftover processes.

        Raises:
            RuntimeError: on a system other than Linux.
        """
        if not sys.platform.startswith("linux"):
            raise RuntimeError(
                f"the local stack needs Linux, because it supervises processes through /proc; found {sys.platform!r}"
            )
        self._token = secrets.token_hex(12)
        self._numbers = itertools.count(1)
        self._children: list[Child] = []
        self._watcher = _start_watcher(self._token, grace_s)

    @property
    def watcher_pid(self) -> int:
        """The process id of the watcher."""
        return self._watcher.pid

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        on_lines: OnLines | None = None,
        descriptors: Sequence[int] = (),
    ) -> Child:
        """Start a child in a new session, in the running event loop, with only `env` and the guard's mark as environment.

        Args:
            argv: the program, looked up on this process's PATH if it has no slash, and its arguments.
            env: the whole environment; only the mark is added.
            cwd: its working directory; None for this process's.
            on_lines: called with each batch of output lines, in order for each stream; if it returns an
                awaitable, reading waits for it. None lets the child inherit this process's standard streams.
            descriptors: of this process's files, those that the child has under the same numbers.

        Raises:
            OSError: the program or the directory does not exist, or access is denied.
        """
        mark = self.new_mark()
        pipe = subprocess.PIPE if on_lines is not None else None
        process = subprocess.Popen(
            argv,
            env={**env, MARK: mark},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
            pass_fds=descriptors,
        )
        return self.keep(Child(process, end=os.pidfd_open(process.pid), mark=mark, on_lines=on_lines))

    def new_mark(self) -> str:
        """The value of the variable `MARK` for one more child."""
        return f"{self._token}:{next(self._numbers)}"

    def keep(self, child: Child) -> Child:
        """End this child, too, in `stop`."""
        self._children = [kept for kept in self._children if kept.returncode is None] + [child]
        return child

    async def stop(self, *, grace_s: float) -> None:
        """End all children at once, then the watcher. Safe to call twice."""
        await asyncio.gather(*(child.stop(grace_s=grace_s) for child in self._children))
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End remaining children and the watcher. For use outside an event loop; safe to call twice."""
        pipe = self._watcher.stdin
        if pipe is not None and not pipe.closed:
            try:
                pipe.write(CLEAN)
                pipe.close()
            except BrokenPipeError:  # the watcher was killed; there is nothing to notify
                pass
        self._watcher.wait(_WATCHER_END_S)


def _start_watcher(token: str, grace_s: float) -> "subprocess.Popen[bytes]":
    # Signals blocked here stay blocked in the watcher from its first instruction on, so that one sent while
    # its interpreter starts does not end it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-S", "-m", _WATCHER, token, str(grace_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env={
                **{name: value for name, value in os.environ.items() if name != MARK},
                "PYTHONPATH": str(_IMPORTED_FROM),
            },
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def empty_folder(prefix: str, state: Path) -> Path:
    """An empty folder with a short path, for a socket's path has at most 107 characters; always the same for one state folder."""
    digest = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:10]
    folder = Path(tempfile.gettempdir()) / f"{prefix}-{digest}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
