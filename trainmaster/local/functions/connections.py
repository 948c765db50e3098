"""Whose connection a port is, read from /proc: which process group holds the socket."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from trainmaster.local.process.family import fields_of, pids

_PROC = Path("/proc")
# gRPC connects to 127.0.0.1 by a socket of IPv6, which is in the second alone.
_TABLES = ("tcp", "tcp6")
_INODE_FIELD = 9
_GROUP_FIELD = 2


def holder_of(port: int, groups: frozenset[int]) -> int | None:
    """The process group, one of `groups`, that holds the socket bound to this local port.

    None when none of them does. A port is one connection's at a time, so the answer holds while that is open.
    """
    inodes = _inodes(port)
    if not inodes:
        return None
    return next((group for pid, group in _members(groups) if _holds(pid, inodes)), None)


def _inodes(port: int) -> frozenset[str]:
    # https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html; the addresses are hexadecimal.
    suffix = f":{port:04X}"
    return frozenset(
        f"socket:[{row[_INODE_FIELD]}]"
        for table in _TABLES
        for row in map(str.split, _rows(_PROC / "net" / table))
        if row[1].endswith(suffix)
    )


def _rows(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()[1:]
    except FileNotFoundError:  # a machine without IPv6
        return []


def _members(groups: frozenset[int]) -> Iterator[tuple[int, int]]:
    for pid in pids():
        fields = fields_of(pid)
        if len(fields) > _GROUP_FIELD and (group := int(fields[_GROUP_FIELD])) in groups:
            yield pid, group


def _holds(pid: int, inodes: frozenset[str]) -> bool:
    with contextlib.suppress(OSError):  # it ended meanwhile
        for descriptor in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if str(descriptor.readlink()) in inodes:
                    return True
    return False
