"""One address for a stack's API and one for its console, in a container whose ports are published.

    python -m trainstack.stack.front --state DIR --listen 0.0.0.0 -- COMMAND

Runs the command that starts the stack, and ends with it. The services themselves listen on loopback alone, where a published
port does not arrive; this listens where it is asked to, and nowhere by default. The services still answer only to requests for
`localhost` and the names of TRAINMASTER_HOSTS, so that a page in a browser cannot reach them by another name.

A connection belongs to the service of its first request, as every client of Google's libraries has its own connections.
A later request for another service gets the first one's refusal.
"""

import argparse
import asyncio
import contextlib
import json
import re
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from trainstack.find import read_stack_env
from trainstack.gateway.egress import close_writer, join, open_stream

API_PORT, CONSOLE_PORT = 8080, 8081
FIRST_LINE_S = 30
_CONSOLE = "TRAINMASTER_CONSOLE"
_PUBSUB_REST = "pubsub-rest"
ROUTES = (
    (re.compile(rb"PRI \* HTTP/2"), "PUBSUB_EMULATOR_HOST"),  # gRPC
    (re.compile(rb"\w+ /v1/projects/[^/ ]+/(?:topics|subscriptions|snapshots|schemas)"), _PUBSUB_REST),
    (re.compile(rb"\w+ /(?:v1|v1beta1|emulator/v1)/projects/[^/ ]+/locations/"), "VERTEX_EMULATOR_HOST"),
    (re.compile(rb"\w+ /emulator/v1/injections"), "VERTEX_EMULATOR_HOST"),
    (re.compile(rb"\w+ /(?:v2/|_stats)"), "LOGGING_EMULATOR_HOST"),
    (re.compile(rb"\w+ /v3/"), "MONITORING_EMULATOR_HOST"),
    (re.compile(rb"\w+ /v1/projects/"), "IAM_EMULATOR_HOST"),
)
"""The name of a connection's address by its first line; Cloud Storage has all others, because its XML API has any path."""


def service_of(first_line: bytes) -> str:
    """The name of the address that a connection is for, as `read_addresses` has it."""
    return next((name for route, name in ROUTES if route.match(first_line)), "STORAGE_EMULATOR_HOST")


def read_addresses(state: Path) -> Mapping[str, str]:
    """The addresses of the stack that is ready on the folder: its variables', and that of Pub/Sub over REST.

    Raises:
        OSError: none is.
    """
    variables = read_stack_env((state / "stack.env").read_text())
    port = json.loads((state / "ports.json").read_text())[_PUBSUB_REST]
    return {**variables, _PUBSUB_REST: f"127.0.0.1:{port}"}


async def serve(state: Path, host: str, ports: tuple[int, int], command: list[str]) -> int:
    """Forward connections while the command runs; its exit status. SIGTERM and Ctrl-C end the command.

    `ports` are those of the API and of the console.
    """

    async def forward(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_console: bool
    ) -> None:
        # Where no stack is ready, or either side breaks the connection, it is closed at once.
        with contextlib.suppress(OSError, ValueError, KeyError, TimeoutError):
            line = b"" if to_console else await asyncio.wait_for(reader.readline(), FIRST_LINE_S)
            address = read_addresses(state)[_CONSOLE if to_console else service_of(line)]
            where = urlsplit(address if "//" in address else f"//{address}")
            far = await open_stream(where.hostname or "", where.port or 0)
            far[1].write(line)
            await join(reader, writer, *far)
        await close_writer(writer)

    servers = [
        await asyncio.start_server(partial(forward, to_console=number > 0), host, port)
        for number, port in enumerate(ports)
    ]
    process = await asyncio.create_subprocess_exec(*command)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, process.send_signal, number)
    try:
        return await process.wait()
    finally:
        for server in servers:
            server.close()


def main() -> int:
    """The command's exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainstack.stack.front", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, metavar="DIR", help="the stack's state folder")
    parser.add_argument(
        "--listen", required=True, metavar="ADDRESS", help="where to listen, for example 0.0.0.0"
    )
    parser.add_argument("--port", type=int, default=API_PORT, help="of the API")
    parser.add_argument("--console-port", type=int, default=CONSOLE_PORT, help="of the console")
    parser.add_argument("command", nargs="+", help="what starts the stack, after --")
    options = parser.parse_args()
    return asyncio.run(
        serve(options.state, options.listen, (options.port, options.console_port), options.command)
    )


if __name__ == "__main__":
    raise SystemExit(main())
