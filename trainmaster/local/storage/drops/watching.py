"""A watch on the buckets' folders: hints, from the kernel, where to look."""

import contextlib
import logging
import os
import select
import threading
from pathlib import Path
from typing import Protocol

from trainmaster.local.storage.drops.inotify import Event, Inotify, Mask
from trainmaster.local.storage.objects.errors import RefusedError

_log = logging.getLogger(__name__)


class Rescanner(Protocol):
    """Who looks where the watch points: `DropScanner`."""

    def look(self, bucket: str, name: str) -> bool: ...
    def refresh(self, bucket: str, prefix: str = "") -> None: ...
    def refresh_all(self) -> None: ...


class Watch:
    """Watches the folders it is told of, and tells of changes in them, in a thread of its own.

    Only hints: when the kernel's queue overflows everything is looked at; where the machine runs out of watches
    the changes in the folders left over are not hinted at.
    """

    def __init__(self, buckets: Path) -> None:
        """Raises `OSError` when the user has too many inotify instances."""
        self._buckets = buckets
        self._inotify = Inotify()
        self._wake = os.eventfd(0)
        self._places: dict[int, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._exhausted = False
        self._thread: threading.Thread | None = None

    def add(self, bucket: str, folder: str) -> None:
        """Watch this folder. To miss nothing, call this before listing it; repeating it is cheap.

        A folder that was renamed keeps its watch, and this tells where it is now.
        """
        try:
            watch = self._inotify.add(f"{self._buckets}/{bucket}/{folder}")
        except (FileNotFoundError, NotADirectoryError):  # it is gone, or a file has its name by now
            return
        except OSError as fault:
            if not self._exhausted:
                _log.warning(
                    "cannot watch %s/%s (%s): changes there are noticed later", bucket, folder, fault
                )
            self._exhausted = True
            return
        with self._lock:
            self._places[watch] = (bucket, folder)

    def start(self, looks: Rescanner) -> None:
        self._thread = threading.Thread(target=self._run, args=(looks,), name="storage watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the thread to end, and let go of every watch."""
        os.eventfd_write(self._wake, 1)
        if self._thread:
            self._thread.join()
        self._inotify.close()
        os.close(self._wake)

    def _run(self, looks: Rescanner) -> None:
        while True:
            ready, _, _ = select.select([self._inotify.descriptor, self._wake], [], [])
            if self._wake in ready:
                return
            # The same file is often named several times in a row: looking once, after the last, is enough.
            for bucket, name in dict.fromkeys(self._place(event) for event in self._inotify.read()):
                try:
                    _point(looks, bucket, name)
                except OSError:
                    _log.exception("cannot look at %s/%s", bucket, name)

    def _place(self, event: Event) -> tuple[str, str]:
        """Bucket and object name; a folder's name ends in a slash; two empty strings stand for everything."""
        if event.mask & Mask.OVERFLOW:
            return "", ""
        with self._lock:
            bucket, folder = self._places.get(event.watch, ("", ""))
            if event.mask & Mask.IGNORED:
                self._places.pop(event.watch, None)
        return bucket, folder + event.name + ("/" if event.mask & Mask.IS_DIRECTORY and event.name else "")


def _point(looks: Rescanner, bucket: str, name: str) -> None:
    with contextlib.suppress(RefusedError):  # the bucket is gone
        if not bucket:
            looks.refresh_all()
        elif name.endswith("/") or not name:
            looks.refresh(bucket, name)
        else:
            looks.look(bucket, name)
