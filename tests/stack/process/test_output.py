"""A process's pipes are read after its end, even while other processes hold them."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest

from tests.stack.waiting import in_time
from trainstack.process.output import LINES_AT_ONCE, LineCutter, Output, OutputStream

SILENCE_S = 0.05

Pipe = tuple[IO[bytes], int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """What is read, and the descriptor by which a stranger still writes."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        with os.fdopen(reading, "rb", buffering=0) as file:
            yield file, writing
    finally:
        os.close(writing)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"one\r\ntwo\n\r\n", [b"one", b"two", b""]),
        (b"\r 1%\r 50%\r100%\nend", [b"100%", b"end"]),
        (b"\r 1%\r 2%\r\r", [b" 2%"]),
        (b"x" * 45, [b"x" * 20, b"x" * 20, b"x" * 5]),
        (b"\r%8d" * 5 % (1, 2, 3, 4, 5), [b"       2", b"       4", b"       5"]),
    ],
)
def test_of_a_line_that_is_overwritten_the_last_version_is_read(
    size: int, written: bytes, lines: list[bytes]
) -> None:
    cutter = LineCutter(limit_bytes=20)
    read = [line for at in range(0, len(written), size) for line in cutter.feed(written[at : at + size])]
    assert read + cutter.close() == lines


@in_time
async def test_a_pipe_that_stays_open_in_silence_is_left_after_all_its_lines(pipe: Pipe) -> None:
    heard: list[bytes] = []
    os.write(pipe[1], b"one\ntwo\nthree")
    await Output({OutputStream.STDOUT: pipe[0]}, lambda _stream, lines: heard.extend(lines), silence_s=SILENCE_S).drain()  # fmt: skip
    assert heard == [b"one", b"two", b"three"]
    assert pipe[0].closed


@in_time
async def test_between_the_lines_of_a_flood_others_have_their_turn(pipe: Pipe) -> None:
    """One read of a pipe may have as many lines as bytes."""
    file, writing = pipe
    flood = os.write(writing, b"\n" * 60_000)
    batches = list[int]()
    turns_before_batch = list[int]()
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def note(_: OutputStream, lines: list[bytes]) -> None:
        batches.append(len(lines))
        turns_before_batch.append(turns)

    other = asyncio.create_task(take_turns())
    await Output({OutputStream.STDOUT: file}, note, silence_s=SILENCE_S).drain()
    other.cancel()
    assert sum(batches) == flood
    assert max(batches) <= LINES_AT_ONCE
    assert turns_before_batch == sorted(set(turns_before_batch))


@in_time
async def test_a_pipe_that_another_process_keeps_writing_to_is_left_in_the_end(pipe: Pipe) -> None:
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                os.write(pipe[1], b"more\n")

    stranger = threading.Thread(target=write)
    heard: list[bytes] = []
    output = Output({OutputStream.STDOUT: pipe[0]}, lambda _stream, lines: heard.extend(lines), longest_s=0.3)
    stranger.start()
    try:
        await output.drain()
    finally:
        over.set()
    stranger.join()
    assert set(heard) == {b"more"}


@in_time
async def test_the_time_of_a_slow_listener_does_not_count_as_silence(pipe: Pipe) -> None:
    heard: list[bytes] = []
    told = asyncio.Event()

    async def slowly(_stream: OutputStream, lines: list[bytes]) -> None:
        await told.wait()
        if not heard:
            os.write(pipe[1], b"last\n")
        heard.extend(lines)

    output = Output({OutputStream.STDOUT: pipe[0]}, slowly, silence_s=SILENCE_S)
    os.write(pipe[1], b"first\n")
    draining = asyncio.create_task(output.drain())
    assert await asyncio.wait({draining}, timeout=10 * SILENCE_S) == (set(), {draining})
    told.set()
    await draining
    assert heard == [b"first", b"last"]


@in_time
async def test_a_listener_that_never_returns_is_abandoned_after_a_limit(pipe: Pipe) -> None:
    async def stands_still(_stream: OutputStream, _lines: list[bytes]) -> None:
        await asyncio.Event().wait()

    os.write(pipe[1], b"one\ntwo")
    await Output({OutputStream.STDOUT: pipe[0]}, stands_still, silence_s=SILENCE_S, longest_s=0.3).drain()


@in_time
async def test_the_time_of_a_blocked_event_loop_does_not_count_as_silence(pipe: Pipe) -> None:
    heard: list[bytes] = []
    os.write(pipe[1], b"one\ntwo\n")
    output = Output(
        {OutputStream.STDOUT: pipe[0]}, lambda _stream, lines: heard.extend(lines), silence_s=SILENCE_S
    )
    draining = asyncio.create_task(output.drain())
    while not draining.done():
        await asyncio.sleep(0)
        still_until = time.monotonic() + 2 * SILENCE_S
        while time.monotonic() < still_until:
            pass
    await draining
    assert heard == [b"one", b"two"]


@in_time
async def test_an_error_of_a_listener_is_raised(pipe: Pipe) -> None:
    def refuse(_stream: OutputStream, _lines: list[bytes]) -> None:
        raise OSError("no room")

    os.write(pipe[1], b"a line\n")
    with pytest.raises(OSError, match="no room"):
        await Output({OutputStream.STDOUT: pipe[0]}, refuse, silence_s=SILENCE_S).drain()
