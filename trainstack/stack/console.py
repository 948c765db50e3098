"""The console beside a stack: a program that shows the stack in the browser."""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainstack.process.output import OutputStream, readable
from trainstack.process.processes import ProcessGuard
from trainstack.stack.ports import bind_port

SERVICE = "console"
LOG_MAX_BYTES = 1024 * 1024
_HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class StackConsole:
    """A program and the socket that it serves.

    Attributes:
        listener: the stack keeps it open, so that connections wait while the program starts.
        command: the program and its arguments, by the number of the listener's descriptor.
        environment: of the program.
    """

    listener: socket.socket
    command: Callable[[int], Sequence[str]]
    environment: Mapping[str, str]

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return f"http://{_HOST}:{self.port}/"


def open_listener(*, port_base: int | None, last_ports: Mapping[str, int]) -> socket.socket:
    """A listening loopback socket on the console's port.

    Raises:
        StackRefusedError: the port that --port-base assigns to it is in use.
    """
    return bind_port(
        SERVICE,
        lambda port: socket.create_server((_HOST, port), backlog=128),
        port_base=port_base,
        last_ports=last_ports,
    )


async def run_console(
    console: StackConsole,
    guard: ProcessGuard,
    *,
    log: Path,
    say: Callable[[str], None],
) -> None:
    """Run the program from the first connection until this is cancelled, or until it ends.

    `log` gets its output, at most LOG_MAX_BYTES. `say` gets one line when it has ended; then its address refuses
    connections.
    """
    await readable(console.listener.fileno())
    try:
        child = guard.start(
            console.command(console.listener.fileno()),
            env=console.environment,
            on_lines=_written_to(log),
            descriptors=[console.listener.fileno()],
        )
        status: object = f"status {await child.wait()}"
    except OSError as error:
        status = error
    console.listener.close()
    say(
        f"The console ended with {status}. Its output is in {log}. The stack keeps running; to start another console: "
        "trainmaster web --write"
    )


def _written_to(log: Path) -> Callable[[OutputStream, list[bytes]], None]:
    """Appends lines to the file while it is small enough."""

    def write(_stream: OutputStream, lines: list[bytes]) -> None:
        with log.open("ab") as file:
            if file.tell() < LOG_MAX_BYTES:
                file.write(b"".join(line + b"\n" for line in lines))

    return write
