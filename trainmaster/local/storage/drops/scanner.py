"""Files that something else wrote into a bucket's folder, or removed from it, become changes of its objects."""

import dataclasses
import mimetypes
import os
import threading
import time
from collections.abc import Callable
from enum import Enum, auto

from trainmaster.local.storage.objects.errors import RefusedError
from trainmaster.local.storage.objects.folder import Folder, Listing, fingerprint_of, is_closed
from trainmaster.local.storage.objects.names import folder_of, is_plain, object_fault
from trainmaster.local.storage.objects.records import Fingerprint, StoredObject
from trainmaster.local.storage.objects.staging import Digest, digest_of
from trainmaster.local.storage.store import Store

DEFAULT_CONTENT_TYPE = "application/octet-stream"
_YOUNG_NS = 20_000_000  # file times advance in ticks of up to 10 ms: what is younger may change again unseen
_MAX_REMEMBERED = 50_000


class _Sight(Enum):
    SETTLED = auto()
    YOUNG = auto()  # taken in, but so recently written that it could change once more without looking changed
    OPEN = auto()  # still being written


class DropScanner:
    """Compares files with records. Safe to call from several threads; blocks while it hashes.

    `before_listing` is told of each bucket's folder before its content is read.
    A file counts when nobody has it open for writing any more. Files seen open or very young wait for `look_again`.
    What Linux cannot tell apart is missed: a file rewritten in place, in the same clock tick
    and to the same size, after it was hashed; files so young are hashed twice for that reason.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before_listing: Callable[[str, str], None] = lambda _bucket, _folder: None
        # Guards the two collections below, held for no longer than a set operation.
        self._lock = threading.Lock()
        self._waiting: set[tuple[str, str]] = set()
        self._unchanged: dict[tuple[str, str], Listing] = {}

    def look(self, bucket: str, name: str, *, reread: bool = False) -> bool:
        """Take in the file's present state. True when record and file agree then, False while it is being written.

        `reread` hashes the file even if it looks as it did. An unknown bucket, or a name that no object has, is ignored.
        """
        sight = _Sight.SETTLED
        if not object_fault(name) and is_plain(name):
            try:
                sight = self._look(self._store.folder(bucket), bucket, name, reread=reread)
            except RefusedError:  # the bucket is gone
                sight = _Sight.SETTLED
        with self._lock:
            if sight is _Sight.SETTLED:
                self._waiting.discard((bucket, name))
            else:
                self._waiting.add((bucket, name))
        return sight is not _Sight.OPEN

    @property
    def is_waiting(self) -> bool:
        """Whether `look_again` has anything to look at."""
        return bool(self._waiting)

    def look_again(self) -> None:
        """Look at every file that was open, or very young, the last time."""
        with self._lock:
            waiting = list(self._waiting)
        for bucket, name in waiting:
            self.look(bucket, name, reread=True)

    def refresh(self, bucket: str, prefix: str = "") -> None:
        """Take in whatever changed among the files whose object names begin with `prefix`.

        Costs one system call per folder that did not change, and one per file in those that did.
        A file rewritten in place does not change its folder: `look` at the files that matter.

        Raises:
            RefusedError: 404, there is no such bucket.
        """
        folder = self._store.folder(bucket)
        start = folder_of(prefix)
        missing = self._store.catalog.folders(bucket, start)
        waiting = [start]
        while waiting:
            current = waiting.pop()
            missing.discard(current)
            for each in self._subfolders(folder, bucket, current):
                inner = f"{current}{each}/"
                if inner.startswith(prefix) or prefix.startswith(inner):
                    waiting.append(inner)
        for gone in missing:
            if gone.startswith(prefix):
                self._compare(bucket, gone, None)

    def refresh_all(self) -> None:
        """Take in every change in every bucket."""
        for bucket in self._store.catalog.buckets():
            try:
                self.refresh(bucket.name)
            except RefusedError:
                continue  # deleted a moment ago

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
        subfolders = tuple(each for each in listing.subfolders if not object_fault(each) and is_plain(each))
        with self._lock:
            self._unchanged.pop(key, None)
            if settled and scanned_ns - listing.identity[0] > _YOUNG_NS:
                if len(self._unchanged) >= _MAX_REMEMBERED:
                    self._unchanged.clear()
                self._unchanged[key] = dataclasses.replace(listing, files={}, subfolders=subfolders)
        return subfolders

    def _compare(self, bucket: str, current: str, listing: Listing | None) -> bool:
        """Look at every file of one folder that differs from its record. True when all is settled."""
        if listing is None:
            # A folder renamed away and back looks as it did, but its objects were taken off the record.
            with self._lock:
                self._unchanged.pop((bucket, current), None)
        known = self._store.catalog.plain_in_folder(bucket, current)
        found = {f"{current}{each}": seen for each, seen in listing.files.items()} if listing else {}
        changed = [name for name, seen in found.items() if known.get(name) != seen]
        removed = [name for name in known if name not in found]
        settled = [self.look(bucket, name) for name in changed + removed]
        return all(settled)

    def _look(self, folder: Folder, bucket: str, name: str, *, reread: bool) -> _Sight:
        live = self._store.find(bucket, name, strict=False)
        known = live.fingerprint if live and not live.aside else None
        if known == folder.fingerprint(name) and not reread:
            return _Sight.SETTLED
        descriptor = folder.open(name)
        if descriptor is None:
            self._vanished(folder, bucket, name)
            return _Sight.SETTLED
        try:
            return self._take_in(folder, descriptor, bucket, name)
        finally:
            os.close(descriptor)

    def _vanished(self, folder: Folder, bucket: str, name: str) -> None:
        with self._store.changing():
            live = self._store.find(bucket, name, strict=False)
            if live and not live.aside and folder.fingerprint(name) is None:
                self._store.catalog.remove(bucket, name)

    def _take_in(self, folder: Folder, descriptor: int, bucket: str, name: str) -> _Sight:
        if not is_closed(descriptor):
            return _Sight.OPEN
        looked_ns = time.time_ns()
        seen = fingerprint_of(os.fstat(descriptor))
        digest = digest_of(descriptor)
        if fingerprint_of(os.fstat(descriptor)) != seen:
            return _Sight.OPEN
        store = self._store
        with store.changing() as now_us:
            if folder.fingerprint(name) != seen:
                return _Sight.OPEN
            replaced = store.find(bucket, name, strict=False)
            if not _is_known(replaced, seen, digest):
                stored = StoredObject(
                    bucket=bucket,
                    name=name,
                    generation=store.catalog.next_generation(now_us),
                    fingerprint=seen,
                    md5=digest.md5,
                    crc32c=digest.crc32c,
                    content_type=mimetypes.guess_type(name)[0] or DEFAULT_CONTENT_TYPE,
                    created_us=now_us,
                    updated_us=now_us,
                )
                store.record(stored, replaced, now_us=now_us)
        store.forget_bytes(replaced, store.find(bucket, name, strict=False))
        return _Sight.YOUNG if looked_ns - seen.mtime_ns <= _YOUNG_NS else _Sight.SETTLED


def _is_known(live: StoredObject | None, seen: Fingerprint, digest: Digest) -> bool:
    return live is not None and not live.aside and live.fingerprint == seen and live.crc32c == digest.crc32c
