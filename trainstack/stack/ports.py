"""The choice of a port for each service of a stack."""

import socket
from collections.abc import Mapping, Sequence

from trainstack.stack.errors import StackRefusedError

SERVICES = ("storage", "pubsub", "vertex", "logging", "console")
"""In order of their ports, starting at --port-base."""


def candidate_ports(service: str, *, port_base: int | None, last_ports: Mapping[str, int]) -> Sequence[int]:
    """The ports to try, in order; 0 is any free one.

    With --port-base it is a fixed one, otherwise the last stack's if that is free.
    """
    # Services that only a stack's own commands use have no port after --port-base.
    if port_base is not None and service in SERVICES:
        return [port_base + SERVICES.index(service)]
    last = last_ports.get(service)
    return [last, 0] if last else [0]


def refuse_taken_ports(port_base: int) -> None:
    """Refuse a base before anything is started or announced. Another program may still take a port after this.

    Raises:
        StackRefusedError: a service's port is in use; the message names the first one.
    """
    for number, service in enumerate(SERVICES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port_base + number))
            except OSError as error:
                raise port_taken(service, port_base + number) from error


def port_taken(service: str, port: int) -> StackRefusedError:
    """The refusal of a port that another program has."""
    return StackRefusedError(
        f"Port {port}, which --port-base assigns to {service}, is in use by another program. "
        "Choose another base, or omit --port-base to pick free ports."
    )
