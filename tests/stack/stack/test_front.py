"""One address for a stack's API: each connection reaches the service of its first request."""

import asyncio
import sys
from pathlib import Path

import pytest

from trainstack.process.ports import free_port
from trainstack.stack.front import serve, service_of


@pytest.mark.parametrize(
    ("first_line", "variable"),
    [
        (b"PRI * HTTP/2.0", "PUBSUB_EMULATOR_HOST"),
        (b"PUT /v1/projects/p/topics/t HTTP/1.1", "pubsub-rest"),
        (b"POST /v1/projects/p/locations/r/customJobs HTTP/1.1", "VERTEX_EMULATOR_HOST"),
        (b"POST /v2/entries:write HTTP/1.1", "LOGGING_EMULATOR_HOST"),
        (b"POST /v1/projects/p:testIamPermissions HTTP/1.1", "IAM_EMULATOR_HOST"),
        (b"POST /upload/storage/v1/b/b/o?uploadType=media HTTP/1.1", "STORAGE_EMULATOR_HOST"),
        (b"GET /bucket/v2/name HTTP/1.1", "STORAGE_EMULATOR_HOST"),
        (b"\x16\x03\x01", "STORAGE_EMULATOR_HOST"),
    ],
)
def test_a_connection_is_for_the_service_of_its_first_line(first_line: bytes, variable: str) -> None:
    assert service_of(first_line) == variable


async def ask(port: int) -> bytes:
    """What the port answers, once it accepts connections."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # not yet
            await asyncio.sleep(0.05)
            continue
        writer.write(b"GET /bucket HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"storage got " + await reader.readline())
    writer.close()
    await writer.wait_closed()


async def answers_before_and_after(state: Path) -> tuple[bytes, bytes, int]:
    """What a client gets while no stack is ready, then while one is, and how the command ended."""
    ports, done = (free_port(), free_port()), state / "done"
    program = f"import pathlib, time\nwhile not pathlib.Path({str(done)!r}).exists(): time.sleep(0.05)\nraise SystemExit(3)"
    serving = asyncio.create_task(serve(state, "127.0.0.1", ports, [sys.executable, "-c", program]))
    before = await ask(ports[0])
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as storage:
        address = f"http://127.0.0.1:{storage.sockets[0].getsockname()[1]}"
        (state / "ports.json").write_text('{"pubsub-rest": 1}')
        (state / "stack.env").write_text(f"export STORAGE_EMULATOR_HOST={address}\n")
        after = await ask(ports[0])
    done.touch()
    return before, after, await serving


def test_requests_are_forwarded_while_a_stack_is_ready_until_its_command_ends(tmp_path: Path) -> None:
    before, after, status = asyncio.run(answers_before_and_after(tmp_path))
    assert before == b""
    assert after == b"storage got GET /bucket HTTP/1.1\r\n"
    assert status == 3
