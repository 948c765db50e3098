"""Turns files that other processes write into a bucket's folder, or remove from it, into changes of objects."""

import contextlib
import dataclasses
import mimetypes
import os
import threading
import time
from collections.abc import Callable
from enum import Enum, auto

from trainstack.storage.objects.errors import RefusedError, too_large
from trainstack.storage.objects.folder import Folder, Listing, fingerprint_of, is_closed
from trainstack.storage.objects.names import folder_of, is_plain, object_fault
from trainstack.storage.objects.protection import inherited
from trainstack.storage.objects.records import Fingerprint, ObjectRecord
from trainstack.storage.objects.staging import Digest, digest_of
from trainstack.storage.store import ObjectStore

DEFAULT_CONTENT_TYPE = "application/octet-stream"
_YOUNG_NS = (
    20_000_000  # file times advance in ticks of up to 10 ms: a younger file may change again unnoticed
)
_MAX_REMEMBERED = 50_000
FOLDERS_MAX = 100_000
"""Of one refresh. A folder whose path leaves no room for an object's name is not entered."""


class _Sight(Enum):
    SETTLED = auto()
    YOUNG = auto()  # recorded, but written so recently that another change might go unnoticed
    OPEN = auto()  # still being written


class DropScanner:
    """Compares files with records. Safe to call from several threads; blocks while it hashes.

    `before_listing` is called with each bucket's folder before its content is read. A file is recorded when
    no process has it open for writing any more. Files found open or very young wait for `look_again`. A
    change that Linux does not expose is missed: a file rewritten in place, in the same clock tick and to the
    same size, after it was hashed. That is why very young files are hashed twice.
    """

    def __init__(self, store: ObjectStore, *, folders_max: int = FOLDERS_MAX) -> None:
        """`folders_max`: how many folders one refresh reads."""
        self._store, self._folders_max = store, folders_max
        self.is_own_change = store.is_own_change
        self.before_listing: Callable[[str, str], None] = lambda _bucket, _folder: None
        # Guards the two collections below; held only for single set operations.
        self._lock = threading.Lock()
        self._waiting: set[tuple[str, str]] = set()
        self._is_stopped = threading.Event()
        self._unchanged: dict[tuple[str, str], Listing] = {}

    def look(self, bucket: str, name: str, *, reread: bool = False) -> bool:
        """Record the file's current state.

        True if record and file then agree, False while it is being written.

        `reread` hashes the file even if it looks unchanged. An unknown bucket, or an invalid object name, is
        ignored.
        """
        sight = _Sight.SETTLED
        if not object_fault(name) and is_plain(name):
            with contextlib.suppress(RefusedError):  # the bucket is gone
                sight = self._look(self._store.folder(bucket), bucket, name, reread=reread)
        with self._lock:
            if sight is _Sight.SETTLED:
                self._waiting.discard((bucket, name))
            else:
                self._waiting.add((bucket, name))
        return sight is not _Sight.OPEN

    def stop(self) -> None:
        """Let every call return at the next file or megabyte, with that file unrecorded."""
        self._is_stopped.set()

    def buckets(self) -> list[str]:
        return [bucket.name for bucket in self._store.catalog.buckets()]

    def waiting_buckets(self) -> set[str]:
        """The buckets in which `look_again` has files to check."""
        with self._lock:
            return {bucket for bucket, _ in self._waiting}

    def look_again(self, bucket: str) -> None:
        """Check again every file of the bucket that was open or very young the last time."""
        with self._lock:
            waiting = [name for other, name in self._waiting if other == bucket]
        for name in waiting:
            self.look(bucket, name, reread=True)

    def forget(self, bucket: str) -> None:
        """Let the next refresh read every folder of the bucket, and so see also files that were rewritten in place."""
        with self._lock:
            for key in [key for key in self._unchanged if key[0] == bucket]:
                del self._unchanged[key]

    def refresh(self, bucket: str, prefix: str = "") -> None:
        """Record all changes among the files whose object names begin with `prefix`.

        Costs one system call per unchanged folder, and one per file in changed ones. A file rewritten in
        place does not change its folder: call `look` for the files that matter.

        Raises:
            RefusedError: 404 for a missing bucket, 400 for too many folders or `folder.ENTRIES_MAX`
                entries of one of them.
        """
        folder = self._store.folder(bucket)
        start = folder_of(prefix)
        missing = self._store.catalog.folders(bucket, start)
        waiting, listed = [start], 0
        while waiting and not self._is_stopped.is_set():
            current, listed = waiting.pop(), listed + 1
            if listed > self._folders_max:
                raise too_large(
                    f"It has more than {self._folders_max:,} folders below {prefix!r}. Name a longer prefix."
                )
            missing.discard(current)
            for subfolder in self._subfolders(folder, bucket, current):
                inner = f"{current}{subfolder}/"
                has_room = not object_fault(f"{inner}x")
                if has_room and (inner.startswith(prefix) or prefix.startswith(inner)):
                    waiting.append(inner)
        for gone in () if self._is_stopped.is_set() else missing:
            if gone.startswith(prefix):
                self._compare(bucket, gone, None)

    def _subfolders(self, folder: Folder, bucket: str, current: str) -> tuple[str, ...]:
        key = (bucket, current)
        with self._lock:
            before = self._unchanged.get(key)
        if before is not None and before.identity == folder.identity(current):
            return before.subfolders
        self.before_listing(bucket, current)
        scanned_ns = time.time_ns()
        listing = folder.list(current)
        settled = self._compare(bucket, current, listing)
        if listing is None:
            return ()
        subfolders = tuple(name for name in listing.subfolders if not object_fault(name) and is_plain(name))
        with self._lock:
            self._unchanged.pop(key, None)
            if settled and scanned_ns - listing.identity[0] > _YOUNG_NS:
                if len(self._unchanged) >= _MAX_REMEMBERED:
                    self._unchanged.clear()
                self._unchanged[key] = dataclasses.replace(listing, files={}, subfolders=subfolders)
        return subfolders

    def _compare(self, bucket: str, current: str, listing: Listing | None) -> bool:
        """Check every file of one folder that differs from its record. True if all are settled."""
        if listing is None:
            # A folder renamed away and back looks unchanged, but its objects were removed from the records.
            with self._lock:
                self._unchanged.pop((bucket, current), None)
        known = self._store.catalog.plain_in_folder(bucket, current)
        files = listing.files if listing else {}
        fingerprints = {f"{current}{name}": fingerprint for name, fingerprint in files.items()}
        changed = [name for name, fingerprint in fingerprints.items() if known.get(name) != fingerprint]
        removed = [name for name in known if name not in fingerprints]
        settled = [self.look(bucket, name) for name in changed + removed]
        return all(settled)

    def _look(self, folder: Folder, bucket: str, name: str, *, reread: bool) -> _Sight:
        live = self._store.find(bucket, name)
        known = live.fingerprint if live and not live.aside else None
        if known == folder.fingerprint(name) and not reread:
            return _Sight.SETTLED
        descriptor = folder.open(name)
        if descriptor is None:
            self._forget_vanished(folder, bucket, name)
            return _Sight.SETTLED
        try:
            return self._take_in(folder, descriptor, bucket, name)
        finally:
            os.close(descriptor)

    def _forget_vanished(self, folder: Folder, bucket: str, name: str) -> None:
        with self._store.changing():
            live = self._store.find(bucket, name)
            if live and not live.aside and folder.fingerprint(name) is None:
                self._store.catalog.remove(live)

    def _take_in(self, folder: Folder, descriptor: int, bucket: str, name: str) -> _Sight:
        if not is_closed(descriptor):
            return _Sight.OPEN
        looked_ns = time.time_ns()
        fingerprint = fingerprint_of(os.fstat(descriptor))
        digest = digest_of(descriptor, lambda: not self._is_stopped.is_set())
        if digest is None or fingerprint_of(os.fstat(descriptor)) != fingerprint:
            return _Sight.OPEN
        store = self._store
        with store.changing() as now_us:
            if folder.fingerprint(name) != fingerprint:
                return _Sight.OPEN
            replaced = store.find(bucket, name)
            if not _is_known(replaced, fingerprint, digest):
                stored = ObjectRecord(
                    bucket=bucket,
                    name=name,
                    generation=store.catalog.next_generation(now_us),
                    fingerprint=fingerprint,
                    md5=digest.md5,
                    crc32c=digest.crc32c,
                    content_type=mimetypes.guess_type(name)[0] or DEFAULT_CONTENT_TYPE,
                    created_us=now_us,
                    updated_us=now_us,
                    fields=inherited(store.bucket(bucket), {}),
                )
                store.record(stored, replaced, now_us=now_us)
        store.forget_bytes(replaced, store.find(bucket, name))
        return _Sight.YOUNG if looked_ns - fingerprint.mtime_ns <= _YOUNG_NS else _Sight.SETTLED


def _is_known(live: ObjectRecord | None, current: Fingerprint, digest: Digest) -> bool:
    return (
        live is not None and not live.aside and live.fingerprint == current and live.crc32c == digest.crc32c
    )
