"""Makes a network with nothing but loopback, for `trainstack.sandbox.network`."""

import contextlib
import fcntl
import os
import socket
import struct

from trainstack.sandbox import syscalls

_BACKLOG = 512
_SET_FLAGS, _UP, _RUNNING = 0x8914, 0x1, 0x40
_STDIN = 0
_FIRST_PORT_OF_ALL = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


def send_network(ports: "list[int]") -> None:
    """Send to standard input, a socket, what `make_network` returns, in a new user namespace. Raises `OSError`."""
    syscalls.enter_user_namespace()
    with socket.socket(fileno=os.dup(_STDIN)) as out:
        for descriptor in make_network(ports):
            socket.send_fds(out, [b"d"], [descriptor])


def make_network(ports: "list[int]") -> "list[int]":
    """Move this thread into a new network.

    The descriptors of its user namespace, of the network, and of a listener on each port. Raises `OSError`.
    """
    syscalls.unshare(syscalls.NEWNET)
    raise_loopback()
    _open_low_ports()
    made: list[int] = []
    try:
        for name in ("user", "net"):
            descriptor = os.open(f"/proc/thread-self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            made.append(descriptor)  # one at a time: after an error, those before are closed
        for port in ports:
            listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
            made.append(listener.detach())
    except BaseException:
        for descriptor in made:
            os.close(descriptor)
        raise
    return made


def _open_low_ports() -> None:
    """Let programs listen below port 1024, as in a container: none has a capability in the network's user namespace."""
    with contextlib.suppress(OSError), open(_FIRST_PORT_OF_ALL, "w", encoding="ascii") as file:
        file.write("0")  # refused where /proc/sys is read-only


def raise_loopback() -> None:
    """Let the new network's only interface carry traffic. Raises `OSError`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP | _RUNNING))
