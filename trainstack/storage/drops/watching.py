"""A watch on the buckets' folders: hints from the kernel where files changed."""

import logging
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

from trainstack.storage.drops.inotify import Event, Inotify, Mask

_log = logging.getLogger(__name__)


Hint = Callable[[str, str], None]
"""Reports a bucket and the object name of a file in it that changed. The name of a folder is empty or ends in a slash."""


class Watch:
    """Watches the added folders and reports changes in them, in a separate thread.

    Reports are only hints. If the kernel's queue overflows, some are lost; if the machine runs out of watches, changes
    in the remaining folders are not reported.
    """

    def __init__(self, buckets: Path) -> None:
        """Raises `OSError` if the user has too many inotify instances."""
        self._buckets = buckets
        self._inotify = Inotify()
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
            watch = self._inotify.add(f"{self._buckets}/{bucket}/{folder}")
        except (FileNotFoundError, NotADirectoryError):  # it is gone, or replaced by a file
            return
        except OSError as fault:
            if not self._exhausted:
                _log.warning(
                    "cannot watch %s/%s (%s): changes there are noticed later, by a rescan",
                    bucket,
                    folder,
                    fault,
                )
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
        self._inotify.close()
        os.close(self._wake)

    def _run(self, hint: Hint, hint_lost: Callable[[], None]) -> None:
        while True:
            ready, _, _ = select.select([self._inotify.descriptor, self._wake], [], [])
            if self._wake in ready:
                return
            # The same file often appears several times in a row: one check, after the last, is enough.
            for bucket, name in dict.fromkeys(self._place(event) for event in self._inotify.read()):
                if bucket:
                    hint(bucket, name)
                else:
                    hint_lost()

    def _place(self, event: Event) -> tuple[str, str]:
        """Bucket and object name; a folder's name ends in a slash; two empty strings mean everything."""
        if event.mask & Mask.OVERFLOW:
            return "", ""
        with self._lock:
            bucket, folder = self._places.get(event.watch, ("", ""))
            if event.mask & Mask.IGNORED:
                self._places.pop(event.watch, None)
        return bucket, folder + event.name + ("/" if event.mask & Mask.IS_DIRECTORY and event.name else "")
