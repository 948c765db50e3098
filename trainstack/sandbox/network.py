"""Networks with nothing but loopback, and with listening sockets there whose connections this process accepts."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from trainstack.sandbox.loopback import make_network
from trainstack.sandbox.probe import LAUNCHER

_WITHIN_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network namespace; it exists while these descriptors or its processes do.

    Attributes:
        user: the descriptor of the user namespace that it belongs to.
        net: its own descriptor.
        listeners: sockets that listen on its 127.0.0.1, in the order of the ports that were requested.
    """

    user: int
    net: int
    listeners: tuple[socket.socket, ...]

    def close(self) -> None:
        """Close the descriptors and the listeners. Call it once."""
        for listener in self.listeners:
            listener.close()
        for descriptor in (self.user, self.net):
            os.close(descriptor)


def open_network(ports: Sequence[int]) -> Network:
    """A new network with a listener on each of these ports; 0 picks a free one.

    Raises:
        OSError: this machine does not allow it; `probe.obstacle` says why.
    """
    user, net, *listening = _made_here(ports) if os.getuid() == 0 else _made_by_a_process(ports)
    return Network(user=user, net=net, listeners=tuple(socket.socket(fileno=fd) for fd in listening))


def _made_here(ports: Sequence[int]) -> list[int]:
    """In a separate thread, which ends in the new network."""
    with ThreadPoolExecutor(1, thread_name_prefix="network") as thread:
        return thread.submit(make_network, list(ports)).result()


def _made_by_a_process(ports: Sequence[int]) -> list[int]:
    """Users other than root need a user namespace, which a process with several threads cannot enter."""
    ours, others = socket.socketpair()
    with ours:
        ours.settimeout(_WITHIN_S)
        with others:
            words = [sys.executable, "-I", "-S", str(LAUNCHER), "--network", *map(str, ports)]
            process = subprocess.Popen(words, stdin=others.fileno(), stderr=subprocess.PIPE, text=True)
        with process:
            descriptors = _receive_descriptors(ours, 2 + len(ports))
            reason = process.communicate()[1].strip()
    if len(descriptors) < 2 + len(ports):
        for descriptor in descriptors:
            os.close(descriptor)
        raise OSError(f"cannot create a network namespace: {reason}")
    return descriptors


def _receive_descriptors(receiver: socket.socket, count: int) -> list[int]:
    """That many descriptors, or fewer if the sender ends early."""
    received: list[int] = []
    for _ in range(count):
        _, descriptors, _, _ = socket.recv_fds(receiver, 1, 1)
        if not descriptors:
            break
        os.set_inheritable(descriptors[0], False)
        received += descriptors
    return received
