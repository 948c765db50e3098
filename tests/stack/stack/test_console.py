"""The console's program is kept running on the stack's socket, and given up after a few ends."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainstack.process.processes import ProcessGuard
from trainstack.stack.console import LOG_MAX_BYTES, StackConsole, keep_console, open_listener
from trainstack.stack.errors import StackRefusedError
from trainstack.stack.ports import refuse_taken_ports

ANSWERS_ONCE = """
import os, socket, sys
print("started")
connection, _ = socket.socket(fileno=int(sys.argv[1])).accept()
connection.sendall(str(os.getpid()).encode())
connection.close()
sys.exit(3)
"""
DEADLINE_S = 60


def kept(
    program: str, log: Path, *, pauses_s: Sequence[float], connections: int
) -> tuple[list[str], list[str], socket.socket]:
    """The answers of the program, what the stack said, and the listener. Without connections the stack is ready."""
    listener = open_listener(port_base=None, last_ports={})
    console = StackConsole(
        listener=listener,
        command=lambda descriptor: [sys.executable, "-c", program, str(descriptor)],
        environment=os.environ,
    )
    said: list[str] = []

    async def run() -> list[str]:
        guard = ProcessGuard(grace_s=1)
        address = listener.getsockname()
        try:
            async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as running:
                ready = asyncio.Event()
                if not connections:
                    ready.set()
                keeping = keep_console(
                    console, guard, ready=ready, log=log, say=said.append, pauses_s=pauses_s
                )
                running.create_task(keeping)
                answers = [
                    running.create_task(asyncio.to_thread(_answer, address)) for _ in range(connections)
                ]
        finally:
            await guard.stop(grace_s=1)
        return [answer.result() for answer in answers]

    return asyncio.run(run()), said, listener


def _answer(address: tuple[str, int]) -> str:
    with socket.create_connection(address, timeout=DEADLINE_S) as connection:
        return connection.recv(100).decode()


def test_a_console_that_ends_is_started_again_on_the_same_socket_and_then_given_up(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    answers, said, listener = kept(ANSWERS_ONCE, log, pauses_s=(0, 0), connections=3)
    assert len(set(answers)) == 3, answers
    assert log.read_text() == "started\n" * 3
    assert len(said) == 1
    assert said[0].startswith(
        "The console ended 3 times, the last time with status 3, and is not started again."
    )
    assert str(log) in said[0]
    assert listener.fileno() == -1  # its address refuses connections


def test_the_output_of_a_console_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    kept(f"print('x' * 99 + '\\n', end='') or [print('y' * 99) for _ in range({LOG_MAX_BYTES // 25})]", log,
         pauses_s=(0,), connections=0)  # fmt: skip
    assert LOG_MAX_BYTES <= log.stat().st_size < 2 * LOG_MAX_BYTES


def test_the_port_of_the_last_console_is_used_again_if_it_is_free() -> None:
    with open_listener(port_base=None, last_ports={}) as first:
        port = first.getsockname()[1]
        with open_listener(port_base=None, last_ports={"console": port}) as other:
            assert other.getsockname()[1] != port
    with open_listener(port_base=None, last_ports={"console": port}) as again:
        assert again.getsockname() == ("127.0.0.1", port)


def test_with_a_base_the_console_has_the_fifth_port() -> None:
    with open_listener(port_base=None, last_ports={}) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            StackRefusedError, match=f"Port {port}, which --port-base assigns to console, is in use"
        ):
            open_listener(port_base=port - 4, last_ports={})
    with open_listener(port_base=port - 4, last_ports={}) as free:
        assert free.getsockname()[1] == port


def test_a_base_with_a_port_that_is_taken_is_refused_before_anything_starts() -> None:
    with open_listener(port_base=None, last_ports={}) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StackRefusedError, match=r"Port \d+, which --port-base assigns to \w+, is in use"):
            refuse_taken_ports(port - 2)
