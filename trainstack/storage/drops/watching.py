"""A watch on the buckets' folders: hints from the kernel where files changed."""

import ctypes
import logging
import os
import select
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_log = logging.getLogger(__name__)

_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 1 << 16
_GATHER_S = 0.002  # before events are read: what writes a file causes several

Hint = Callable[[str, str], None]
"""Reports a bucket and the object name of a file in it that changed. The name of a folder is empty or ends in a slash."""


class Mask:
    """Bits of a mask, plain numbers because a job may cause thousands of events a second, which enumerations would slow.

    Source: <sys/inotify.h>
    """

    CLOSE_WRITE = 0x008
    MOVED_FROM = 0x040
    MOVED_TO = 0x080
    CREATE = 0x100
    DELETE = 0x200
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


class Watch:
    """Watches the added folders and reports changes in them, in a separate thread.

    Reports are only hints. If the kernel's queue overflows, some are lost; if the machine runs out of watches, changes
    in the remaining folders are not reported.

    It makes the three calls of inotify(7) itself, because the libraries hide what matters here: watchdog 7.1 warns when
    folders appear quickly inside each other, and does not report an overflow of the kernel's queue; watchfiles 1.3 reports
    no close of a file.
    """

    def __init__(self, buckets: Path) -> None:
        """Raises `OSError` if the user has too many inotify instances."""
        self._buckets = buckets
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = _checked_result(self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        self._wake = os.eventfd(0)
        self._places: dict[int, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._exhausted = False
        self._thread: threading.Thread | None = None

    def add(self, bucket: str, folder: str) -> None:
        """Watch this folder.

        To miss nothing, call this before listing it; repeated calls are cheap. A renamed folder keeps its
        watch; this call records its new path.
        """
        try:
            path = os.fsencode(f"{self._buckets}/{bucket}/{folder}")
            watch = _checked_result(self._libc.inotify_add_watch(self._inotify, path, _WANTED))
        except (FileNotFoundError, NotADirectoryError):  # it is gone, or replaced by a file
            return
        except OSError as fault:
            if not self._exhausted:
                later = "changes there are noticed later, by a rescan"
                _log.warning("cannot watch %s/%s (%s): %s", bucket, folder, fault, later)
            self._exhausted = True
            return
        with self._lock:
            self._places[watch] = (bucket, folder)

    def start(self, hint: Hint, hint_lost: Callable[[], None]) -> None:
        """Report changes by `hint`, and by `hint_lost` that anything may have changed. Both return at once."""
        self._thread = threading.Thread(
            target=self._run, args=(hint, hint_lost), name="storage watch", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Wait for the thread to end, and remove every watch."""
        os.eventfd_write(self._wake, 1)
        if self._thread:
            self._thread.join()
        os.close(self._inotify)
        os.close(self._wake)

    def _run(self, hint: Hint, hint_lost: Callable[[], None]) -> None:
        while True:
            ready, _, _ = select.select([self._inotify, self._wake], [], [])
            if self._wake in ready:
                return
            time.sleep(_GATHER_S)
            # The same file often appears several times in a row: one check, after the last, is enough.
            for bucket, name in dict.fromkeys(self._changed_places()):
                if bucket:
                    hint(bucket, name)
                else:
                    hint_lost()

    def _changed_places(self) -> Iterator[tuple[str, str]]:
        """Bucket and object name of each event; a folder's name ends in a slash; two empty strings mean everything.

        An overflow of the kernel's queue has no place: its watch is -1.
        """
        try:
            events = os.read(self._inotify, _READ_BYTES)
        except BlockingIOError:
            return
        position = 0
        while position < len(events):
            watch, mask, _, length = _HEAD.unpack_from(events, position)
            position += _HEAD.size + length
            name = os.fsdecode(events[position - length : position].rstrip(b"\0"))
            with self._lock:
                bucket, folder = self._places.get(watch, ("", ""))
                if mask & Mask.IGNORED:
                    self._places.pop(watch, None)
            yield bucket, folder + name + ("/" if mask & Mask.IS_DIRECTORY and name else "")


def _checked_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
