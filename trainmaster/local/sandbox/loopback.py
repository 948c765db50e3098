"""Makes a network with nothing but loopback, for `trainmaster.local.sandbox.network`."""

import fcntl
import os
import socket
import struct

from trainmaster.local.sandbox import syscalls

_BACKLOG = 512
_SET_FLAGS, _UP, _RUNNING = 0x8914, 0x1, 0x40
_STDIN = 0


def make_network(ports: "list[int]") -> None:
    """Send to standard input, a socket: the user namespace, the network, and a listener on each port. Raises `OSError`."""
    if os.getuid() != 0:
        syscalls.enter_user_namespace()
    syscalls.unshare(syscalls.NEWNET)
    raise_loopback()
    with socket.socket(fileno=os.dup(_STDIN)) as out:
        for name in ("user", "net"):
            with open(f"/proc/self/ns/{name}", "rb") as namespace:
                socket.send_fds(out, [b"n"], [namespace.fileno()])
        for port in ports:
            with socket.create_server(("127.0.0.1", port), backlog=_BACKLOG) as listener:
                socket.send_fds(out, [b"l"], [listener.fileno()])


def raise_loopback() -> None:
    """Let the new network's only interface carry traffic. Raises `OSError`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP | _RUNNING))
