"""One child: its lines, its end, and what it leaves behind."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.stack.waiting import in_time
from trainstack.process import family
from trainstack.process.family import MARK
from trainstack.process.output import LINE_LIMIT_BYTES, OutputStream
from trainstack.process.processes import ProcessGuard


@pytest.fixture
def guard() -> Iterator[ProcessGuard]:
    with closing(ProcessGuard(grace_s=0.1)) as started:
        yield started


ParsedNotice = list[tuple[OutputStream, bytes]]


def run(guard: ProcessGuard, program: str, env: dict[str, str] | None = None) -> tuple[int, ParsedNotice]:
    heard: ParsedNotice = []

    async def ran() -> int:
        child = guard.start(
            [sys.executable, "-c", program],
            env=env or {},
            on_lines=lambda stream, lines: heard.extend((stream, line) for line in lines),
        )
        return await child.wait()

    return asyncio.run(ran()), heard


def test_every_line_arrives_in_order_before_the_end(guard: ProcessGuard) -> None:
    code, heard = run(guard, "import sys; [print(i) for i in range(20000)]; sys.exit(3)")
    assert code == 3
    assert heard == [(OutputStream.STDOUT, str(i).encode()) for i in range(20000)]


def test_the_environment_is_the_given_one_and_the_mark(guard: ProcessGuard) -> None:
    _, heard = run(guard, "import os; print(sorted(os.environ))", {"ONLY": "this", "LC_CTYPE": "C.UTF-8"})
    assert heard == [(OutputStream.STDOUT, repr(["LC_CTYPE", "ONLY", MARK]).encode())]


def test_a_last_line_without_newline_and_a_long_line_in_pieces_arrive(guard: ProcessGuard) -> None:
    _, heard = run(guard, "print('x' * 300_000); print('end', end='')")
    assert [len(line) for _, line in heard] == [LINE_LIMIT_BYTES, 300_000 - LINE_LIMIT_BYTES, 3]


@pytest.mark.slow
def test_what_a_finished_child_left_running_ends_with_it(guard: ProcessGuard) -> None:
    program = (
        "import subprocess, sys;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
        "print(p.pid)"
    )
    code, heard = run(guard, program)
    assert code == 0
    assert family.fields_of(int(heard[0][1]))[:1] in ([], [b"Z"]), (
        "it has ended, whether or not init has reaped it"
    )


@in_time
async def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(guard: ProcessGuard) -> None:
    up = asyncio.Event()
    child = guard.start(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
        ],
        env={},
        on_lines=lambda _stream, _lines: up.set(),
    )
    await up.wait()
    assert await child.stop(grace_s=0.1) == await child.stop(grace_s=0.1)
    assert await child.wait() == -9


@in_time
async def test_a_missing_program_is_an_error_at_once(guard: ProcessGuard) -> None:
    with pytest.raises(FileNotFoundError):
        guard.start(["/no/such/program"], env={})
