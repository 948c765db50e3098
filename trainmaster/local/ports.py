"""Free ports on loopback for programs that are started a moment later."""

import random
import socket
import threading
from collections.abc import Iterable

# Below the range from which the kernel picks ports for outgoing connections (32768 and up on Linux),
# so that no client takes one between our looking and the replica's listening.
_RANGE = range(20_000, 32_000)
_taken: set[int] = set()
_taking = threading.Lock()  # jobs are prepared in threads, several at once


def free_ports(count: int) -> list[int]:
    """`count` ports that nobody listens on and that this process has not handed out before.

    Raises:
        RuntimeError: the range is used up.
    """
    found: list[int] = []
    with _taking:
        for port in random.sample(_RANGE, len(_RANGE)):
            if len(found) == count:
                break
            if port not in _taken and _is_free(port):
                _taken.add(port)
                found.append(port)
    if len(found) < count:
        give_back(found)
        raise RuntimeError(f"no {count} free ports between {_RANGE.start} and {_RANGE.stop}")
    return found


def free_port(wanted: int = 0) -> int:
    """`wanted` where it is one that `free_ports` could give, else any other of those; 0 wants none.

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
