"""The choice of a port for each service of a stack."""

import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import TypeVar

from trainstack.stack.errors import StackRefusedError

SERVICES = ("storage", "pubsub", "vertex", "logging", "console")
"""In order of their ports, starting at --port-base."""
_Bound = TypeVar("_Bound")


def bind_port(
    service: str, bind: Callable[[int], _Bound], *, port_base: int | None, last_ports: Mapping[str, int]
) -> _Bound:
    """What `bind` returns for the first port that it can bind, of those for the service; it gets 0 for any free one.

    With --port-base a service of SERVICES has a fixed port, otherwise the last stack's if that is free.

    Raises:
        StackRefusedError: the port that --port-base assigns to it is in use.
    """
    if port_base is not None and service in SERVICES:
        ports = [port_base + SERVICES.index(service)]
    else:
        ports = [port for port in (last_ports.get(service), 0) if port is not None]
    for port in ports:
        with contextlib.suppress(OSError):
            return bind(port)
    raise port_taken(service, ports[0])


def refuse_taken_ports(port_base: int) -> None:
    """Refuse a base before anything is started or announced. Another program may still take a port after this.

    Raises:
        StackRefusedError: a service's port is in use; the message names the first one.
    """
    for number, service in enumerate(SERVICES):
        try:
            socket.create_server(("127.0.0.1", port_base + number)).close()
        except OSError as error:
            raise port_taken(service, port_base + number) from error


def port_taken(service: str, port: int) -> StackRefusedError:
    """The refusal of a port that another program has."""
    return StackRefusedError(
        f"Port {port}, which --port-base assigns to {service}, is in use by another program. "
        "Choose another base, or omit --port-base to pick free ports."
    )
