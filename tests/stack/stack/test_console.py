"""The console's program runs on the stack's socket, and its end is reported."""

import asyncio
import contextlib
import os
import socket
import sys
from pathlib import Path

import pytest

from trainstack.process.processes import ProcessGuard
from trainstack.stack.console import LOG_MAX_BYTES, StackConsole, open_listener, run_console
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


def ran(program: str, log: Path) -> tuple[str, list[str], socket.socket]:
    """The answer of the program to a connection, what the stack said, and the listener."""
    listener = open_listener(port_base=None, last_ports={})
    console = StackConsole(
        listener=listener,
        command=lambda descriptor: [sys.executable, "-c", program, str(descriptor)],
        environment=os.environ,
    )
    said: list[str] = []

    async def run() -> str:
        guard = ProcessGuard(grace_s=1)
        address = listener.getsockname()
        try:
            async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as running:
                running.create_task(run_console(console, guard, log=log, say=said.append))
                answer = await asyncio.to_thread(_answer, address)
        finally:
            await guard.stop(grace_s=1)
        return answer

    return asyncio.run(run()), said, listener


def _answer(address: tuple[str, int]) -> str:
    with socket.create_connection(address, timeout=DEADLINE_S) as connection:
        with contextlib.suppress(ConnectionResetError):  # the program has ended
            return connection.recv(100).decode()
        return ""


def test_a_console_starts_for_a_browser_and_its_end_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    answer, said, listener = ran(ANSWERS_ONCE, log)
    assert answer.isdecimal()
    assert log.read_text() == "started\n"
    assert len(said) == 1
    assert said[0].startswith(f"The console ended with status 3. Its output is in {log}. ")
    assert listener.fileno() == -1  # its address refuses connections


def test_the_output_of_a_console_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    ran(f"for _ in range({LOG_MAX_BYTES // 25}): print('y' * 99)", log)
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
