"""A process's output: passes every line to a listener, to the last one."""

import asyncio
import os
import select
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import IO


class OutputStream(Enum):
    """Where a line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


OnLines = Callable[[OutputStream, list[bytes]], Awaitable[None] | None]

LINE_LIMIT_BYTES = 224 * 1024
"""Less than the 256 KiB of a log entry, which counts its labels and the escapes of its text too."""
LINES_AT_ONCE = 250
"""For a listener: others have their turn in the event loop after this number of lines, of which one read may have 65,536."""
_CHUNK_BYTES = 64 * 1024


@dataclass(kw_only=True)
class LineCutter:
    """Splits a stream of bytes at newlines, and lines longer than `limit_bytes` into pieces.

    Carriage returns overwrite what is before them in the line, as on a terminal: of a progress bar, a line or
    a piece holds the last version. A line that is too long is cut between two versions.
    """

    limit_bytes: int
    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, in order, without their newlines."""
        self._rest += data
        if b"\n" not in data and len(self._rest) <= self.limit_bytes:
            return []
        *whole, rest = bytes(self._rest).split(b"\n")
        pieces = [piece for line in whole for piece in self._pieces(line)]
        *over, last = self._pieces(rest)
        self._rest = bytearray(last)
        return [_last_version(piece) for piece in pieces + over]

    def close(self) -> list[bytes]:
        """The rest of the stream after its last newline."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [_last_version(piece) for piece in self._pieces(rest)] if rest else []

    def _pieces(self, line: bytes) -> list[bytes]:
        """At least one piece, with its carriage returns."""
        pieces = []
        while len(line) > self.limit_bytes:
            cut = line.rfind(b"\r", 1, self.limit_bytes) + 1 or self.limit_bytes
            pieces.append(line[:cut])
            line = line[cut:]
        return [*pieces, line]


def _last_version(line: bytes) -> bytes:
    """What is left of a line on a terminal, if each version is at least as long as the one before."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


class Output:
    """Reads the pipes of one process. Create it in a running event loop."""

    def __init__(
        self,
        pipes: Mapping[OutputStream, IO[bytes]],
        on_lines: OnLines,
        *,
        silence_s: float = 2.0,
        longest_s: float = 60.0,
    ) -> None:
        """Start reading.

        Args:
            pipes: the read ends; each is closed when it has been read to its end.
            on_lines: as in `ProcessGuard.start`.
            silence_s: how long `drain` waits for the end of a pipe that is empty.
            longest_s: the longest time `drain` takes, however much output there is and however slow the listener.
        """
        self._on_lines = on_lines
        self._silence_s, self._longest_s = silence_s, longest_s
        self._being_handed_over = 0
        self._readers = {
            asyncio.create_task(self._read(pipe, stream)): pipe for stream, pipe in pipes.items()
        }

    async def drain(self) -> None:
        """Return when the listener has received everything. Call it after the process has ended.

        Another process may keep a pipe open; reading it is abandoned after a while.

        Raises:
            Exception: what the listener raised.
        """
        deadline = time.monotonic() + self._longest_s
        more = True
        unread = set(self._readers)
        while unread and more and (left_s := deadline - time.monotonic()) > 0:
            _, unread = await asyncio.wait(unread, timeout=min(self._silence_s, left_s))
            # Elapsed time alone proves nothing: the listener may be slow or the event loop stalled. All that
            # the process wrote was in the pipe before it ended, so an empty pipe has no more to come.
            more = self._being_handed_over > 0 or _hold_something(self._readers[reader] for reader in unread)
        for reader in unread:
            reader.cancel()
        done, _ = await asyncio.wait(self._readers, timeout=self._silence_s)  # for the last, unfinished line
        for reader in done:
            if not reader.cancelled() and (error := reader.exception()) is not None:
                raise error

    async def _read(self, pipe: IO[bytes], stream: OutputStream) -> None:
        cutter = LineCutter(limit_bytes=LINE_LIMIT_BYTES)
        try:
            with pipe:
                while data := await _read_some(pipe.fileno()):
                    await self._hand_over(cutter.feed(data), stream)
        finally:
            await self._hand_over(cutter.close(), stream)

    async def _hand_over(self, lines: list[bytes], stream: OutputStream) -> None:
        self._being_handed_over += 1
        try:
            for first in range(0, len(lines), LINES_AT_ONCE):
                waiting = self._on_lines(stream, lines[first : first + LINES_AT_ONCE])
                if waiting is not None:
                    await waiting
                await asyncio.sleep(0)
        finally:
            self._being_handed_over -= 1


async def readable(descriptor: int) -> None:
    """Return when a read of `descriptor` would not block."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def _read_some(descriptor: int) -> bytes:
    await readable(descriptor)
    return os.read(descriptor, _CHUNK_BYTES)


def _hold_something(pipes: Iterable[IO[bytes]]) -> bool:
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    return bool(poll.poll(0))
