"""A minimal binding of the kernel's inotify(7), for watching folders.

It binds three calls itself, because the libraries hide what matters here. watchdog 7.1 warns when folders appear quickly
inside each other, and does not report an overflow of the kernel's queue; watchfiles 1.3 reports no close of a file.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 1 << 16
AVAILABLE = sys.platform == "linux"


class Mask:
    """Bits of a mask, plain numbers because a job may cause thousands of events a second, which enumerations would slow.

    Source: <sys/inotify.h>
    """

    CLOSE_WRITE = 0x008
    MOVED_FROM = 0x040
    MOVED_TO = 0x080
    CREATE = 0x100
    DELETE = 0x200
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLY_DIRECTORIES = 0x0100_0000
    NO_LINKS = 0x0200_0000
    IS_DIRECTORY = 0x4000_0000


# No modification events: a job that writes logs causes thousands of them, and only the close counts.
_WANTED = (
    Mask.CLOSE_WRITE
    | Mask.MOVED_FROM
    | Mask.MOVED_TO
    | Mask.CREATE
    | Mask.DELETE
    | Mask.ONLY_DIRECTORIES
    | Mask.NO_LINKS
)


class Event(NamedTuple):
    """`name` is the affected entry of the watched directory; `watch` is -1 on overflow; `mask` has bits of `Mask`."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One inotify instance. Use it only if `AVAILABLE`."""

    def __init__(self) -> None:
        """Raises `OSError` if the user has too many instances."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._check_result(self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def add(self, path: str) -> int:
        """Watch this directory; returns the existing watch if it already has one, under whatever path.

        Raises:
            OSError: the directory is gone, or the user has too many watches (ENOSPC).
        """
        return self._check_result(self._libc.inotify_add_watch(self.descriptor, os.fsencode(path), _WANTED))

    def read(self) -> Iterator[Event]:
        """The events since the last read."""
        try:
            data = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        position = 0
        while position < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, position)
            position += _HEAD.size
            name = data[position : position + length].rstrip(b"\0")
            position += length
            yield Event(watch, mask, os.fsdecode(name))

    def close(self) -> None:
        os.close(self.descriptor)

    @staticmethod
    def _check_result(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
