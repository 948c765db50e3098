"""One child process: its output lines, its exit, and the cleanup of everything it started."""

import asyncio
import os
import time
from typing import IO, Protocol

from trainstack.process import family
from trainstack.process.output import OnLines, Output, OutputStream, readable


class Process(Protocol):
    """The part of Popen's interface that `Child` uses."""

    pid: int
    returncode: int | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def terminate(self) -> None:
        """Send SIGTERM, unless the end is known."""

    def kill(self) -> None:
        """Send SIGKILL, unless the end is known."""

    def wait(self) -> int:
        """The exit code."""
        ...


class Child:
    """A started process. Created by `ProcessGuard` in a running event loop.

    asyncio's subprocesses are not used: their `wait` also waits for the pipes, which a grandchild in another
    session may keep open indefinitely.
    """

    def __init__(self, process: Process, *, end: int, mark: str, on_lines: OnLines | None) -> None:
        """Start reading the output and waiting for the end of `process`, which carries `mark`.

        `end` is a descriptor that is readable when the process has ended; it is closed then.
        """
        self._process = process
        self._mark = mark
        self._ended_at: float | None = None
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

    @property
    def ended_at(self) -> float | None:
        """When the end of the process was noticed (`time.monotonic`), before `wait` returns; None until then."""
        return self._ended_at

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
        self._ended_at = time.monotonic()
        code = self._process.wait()
        os.close(end)
        # A container ends with its first process; end what that process left running.
        await asyncio.to_thread(family.end, self._mark, grace_s=0.0)
        if self._output is not None:
            await self._output.drain()
        return code
