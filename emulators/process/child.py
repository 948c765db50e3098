"""One child process: its output by lines, its end, and nothing of it left afterwards."""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import IO

from emulators.process import family
from emulators.process.lines import LineCutter


class Stream(Enum):
    """Where a line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


OnLines = Callable[[Stream, list[bytes]], Awaitable[None] | None]

LINE_LIMIT_BYTES = 256 * 1024
_CHUNK_BYTES = 256 * 1024
_DRAIN_S = 2.0


class Child:
    """A started process. Made by `ProcessGuard.start`, inside a running event loop.

    asyncio's own subprocesses are not used: their `wait` also waits for the pipes,
    which a grandchild in another session may hold open for ever.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", *, mark: str, on_lines: OnLines | None) -> None:
        """Begin to read the output and to wait for the end of `process`, which carries `mark`."""
        self._process = process
        self._mark = mark
        self._ended_at: float | None = None
        self._readers = [
            asyncio.create_task(_read(pipe, stream, on_lines))
            for pipe, stream in ((process.stdout, Stream.STDOUT), (process.stderr, Stream.STDERR))
            if pipe is not None and on_lines is not None
        ]
        self._ended = asyncio.create_task(self._end(os.pidfd_open(process.pid)))

    @property
    def pid(self) -> int:
        """The process id, which is also its session's and its process group's."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As `subprocess` gives it: minus the signal's number for a process ended by a signal."""
        return self._process.returncode

    @property
    def ended_at(self) -> float | None:
        """When the process was seen to have ended (`time.monotonic`), which `wait` tells only later; None before."""
        return self._ended_at

    async def wait(self) -> int:
        """The return code, once the process, all it started and all it wrote have been dealt with."""
        return await asyncio.shield(self._ended)

    async def stop(self, *, grace_s: float) -> int:
        """End the process: SIGTERM, and SIGKILL after `grace_s` seconds. Safe to call again and after its end."""
        self._process.terminate()
        done, _ = await asyncio.wait({self._ended}, timeout=grace_s)
        if not done:
            self._process.kill()
        return await self.wait()

    async def _end(self, pidfd: int) -> int:
        await _readable(pidfd)
        self._ended_at = time.monotonic()
        os.close(pidfd)
        code = self._process.wait()
        # A container ends with its first process; what that process left behind ends here.
        await asyncio.to_thread(family.end, self._mark, grace_s=0.0)
        if self._readers:
            _, unread = await asyncio.wait(self._readers, timeout=_DRAIN_S)
            for reader in unread:  # only a process that shed our mark can still hold the pipe
                reader.cancel()
            for outcome in await asyncio.gather(*self._readers, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome
        return code


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def _read(pipe: IO[bytes], stream: Stream, on_lines: OnLines) -> None:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    cutter = LineCutter(limit_bytes=LINE_LIMIT_BYTES)
    try:
        while data := await reader.read(_CHUNK_BYTES):
            await _hand_over(cutter.feed(data), stream, on_lines)
    finally:
        transport.close()
        await _hand_over(cutter.close(), stream, on_lines)


async def _hand_over(lines: list[bytes], stream: Stream, on_lines: OnLines) -> None:
    if lines and (waiting := on_lines(stream, lines)) is not None:
        await waiting
