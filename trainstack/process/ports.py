"""Free loopback ports for programs that are started shortly afterwards."""

import random
import socket
import threading
from collections.abc import Iterable

# Below the kernel's range of ports for outgoing connections (32768 and up on Linux), so that no client takes
# a port between this check and the replica's listening.
_RANGE = range(20_000, 32_000)
_taken: set[int] = set()
_taking = threading.Lock()  # several threads prepare jobs at once


def free_ports(count: int) -> list[int]:
    """`count` ports without a listener that this process has not handed out before.

    Raises:
        RuntimeError: the range is used up.
    """
    free: list[int] = []
    with _taking:
        for port in random.sample(_RANGE, len(_RANGE)):
            if len(free) == count:
                break
            if port not in _taken and _is_free(port):
                _taken.add(port)
                free.append(port)
    if len(free) < count:
        give_back(free)
        raise RuntimeError(f"found fewer than {count} free ports from {_RANGE.start} to {_RANGE.stop - 1}")
    return free


def free_port(wanted: int = 0) -> int:
    """`wanted` if `free_ports` could return it, else any other free port; 0 for no preference.

    Raises:
        RuntimeError: the range is used up.
    """
    with _taking:
        if wanted and wanted not in _taken and _is_free(wanted):
            _taken.add(wanted)
            return wanted
    return free_ports(1)[0]


def give_back(ports: Iterable[int]) -> None:
    with _taking:
        _taken.difference_update(ports)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
