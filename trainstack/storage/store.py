"""Objects and their files, changed together: every change is atomic, survives a kill, and respects its preconditions.

The record is written before the staged file is renamed into place. After a kill in between, the next start finishes
the rename; in the other order the object would come back as a foreign file, without its metadata.
"""

import contextlib
import dataclasses
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from trainstack.storage.notifications import Notifications
from trainstack.storage.objects.catalog import Catalog
from trainstack.storage.objects.errors import (
    NoSuchObjectError,
    being_written,
    invalid,
    no_such_bucket,
)
from trainstack.storage.objects.folder import Folder, fingerprint_of
from trainstack.storage.objects.names import is_plain, object_fault
from trainstack.storage.objects.preconditions import Insertion, ObjectTarget
from trainstack.storage.objects.protection import inherited, old_generation, with_retention
from trainstack.storage.objects.records import (
    ARCHIVE,
    DELETE,
    FINALIZE,
    METADATA_UPDATE,
    BucketRecord,
    Fingerprint,
    ObjectRecord,
)
from trainstack.storage.objects.staging import Staged


class ObjectStore:
    """One directory of buckets. Thread-safe; only one process at a time may have it open.

    A write commits the record first, naming the staged file, and then moves that file into place; a start
    after a kill finishes pending moves. So a record always has its bytes. What stays of a plain file that is replaced gets
    a second name aside before the commit: its generation's number. One that is deleted or moved loses its first name before
    the commit, and gets it back at a start if the change was not committed.

    Methods on one object use its record, whatever its file is by now: `StorageService.settle` records first what other
    processes have written.
    """

    def __init__(self, directory: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another process has this directory open.
        """
        self.catalog = Catalog(directory / "objects.db")
        self.notifications = Notifications(self.catalog)
        self.buckets_path = directory / "buckets"
        self._aside = directory / "aside"
        self.uploads_path = directory / "uploads"
        for path in (self.buckets_path, self._aside, self.uploads_path):
            path.mkdir(parents=True, exist_ok=True)
        self._folders: dict[str, Folder] = {}
        # Those that the kernel may not have reported yet.
        self._own_changes = deque[tuple[str, str, Fingerprint]](maxlen=64)
        self._recover()

    def close(self) -> None:
        self.catalog.close()

    @staticmethod
    def now_us() -> int:
        return time.time_ns() // 1000

    @contextlib.contextmanager
    def changing(self) -> Iterator[int]:
        """An exclusive transaction; yields the time of the change in microseconds."""
        with self.catalog.transaction():
            yield self.now_us()
        self.notifications.outbox.wake()

    def folder(self, bucket: str) -> Folder:
        """The plain files of a bucket. Raises `RefusedError` (404) if there is no such bucket."""
        cached = self._folders.get(bucket)
        if cached is None:
            self.bucket(bucket)
            cached = self._folders[bucket] = Folder(self.buckets_path / bucket)
        return cached

    def is_own_change(self, bucket: str, name: str) -> bool:
        """Whether the file is as this store itself has just written it."""
        folder = self._folders.get(bucket)
        return folder is not None and (bucket, name, folder.fingerprint(name)) in self._own_changes

    def forget_folder(self, bucket: str) -> None:
        self._folders.pop(bucket, None)

    def bucket(self, name: str) -> BucketRecord:
        """Raises `RefusedError` (404) when there is no such bucket."""
        stored = self.catalog.find_bucket(name)
        if stored is None:
            raise no_such_bucket(name)
        return stored

    def is_settled(self, bucket: str, name: str) -> bool:
        """Whether the file matches its record: an object kept aside, or a missing object, has no file.

        Raises `RefusedError` (404) for a missing bucket.
        """
        with self.catalog.lock:
            folder = self.folder(bucket)
            live = self.catalog.find(bucket, name)
            recorded = live.fingerprint if live and not live.aside else None
            return recorded == (folder.fingerprint(name) if is_plain(name) else None)

    def find(self, bucket: str, name: str) -> ObjectRecord | None:
        """The live object, or None. Raises `RefusedError` (404) for a missing bucket."""
        with self.catalog.lock:
            record, live = self.bucket(bucket), self.catalog.find(bucket, name)
            return with_retention(live, record) if live else None

    def get(self, target: ObjectTarget) -> ObjectRecord:
        """The live object, or the requested generation. Raises `RefusedError` (404) if it is missing."""
        with self.catalog.lock:
            record, stored = self.bucket(target.bucket), self.catalog.find(target.bucket, target.name)
            if target.generation is not None and (not stored or stored.generation != target.generation):
                stored = self.catalog.find_old(target.bucket, target.name, target.generation)
            if (
                stored is None
                or bool(stored.soft_deleted_us) != target.soft_deleted
                or 0 < stored.hard_delete_us <= self.now_us()
            ):
                raise NoSuchObjectError(target.bucket, target.name)
            return with_retention(stored, record)

    def open(self, stored: ObjectRecord) -> int:
        """A descriptor of the object's bytes, for the caller to close.

        Raises:
            RefusedError: 503 if the file is being rewritten.
        """
        if stored.aside:
            return os.open(self._aside / stored.aside, os.O_RDONLY)
        descriptor = self.folder(stored.bucket).open(stored.name)
        if descriptor is None:
            raise being_written(stored.bucket, stored.name)
        if fingerprint_of(os.fstat(descriptor)) != stored.fingerprint:
            os.close(descriptor)
            raise being_written(stored.bucket, stored.name)
        return descriptor

    def put(self, staged: Staged, insertion: Insertion, *, composite: bool = False) -> ObjectRecord:
        """Create a new live generation from the staged bytes. A composite has no MD5.

        Raises:
            RefusedError: 400 for an invalid object name, 403 for an object that the caller must not replace or that is
                protected, 404 for a missing bucket, 412 for a condition that does not hold.
        """
        if fault := object_fault(insertion.name):
            raise invalid(fault)
        with self.catalog.lock:
            replaced = self._replaceable(insertion)
            stored = self._record_with(
                ObjectRecord(
                    bucket=insertion.bucket,
                    name=insertion.name,
                    generation=0,
                    fingerprint=staged.fingerprint(),
                    md5="" if composite else staged.digest.md5,
                    crc32c=staged.digest.crc32c,
                    content_type=insertion.content_type,
                    created_us=0,
                    updated_us=0,
                    fields=inherited(self.bucket(insertion.bucket), insertion.fields),
                    token=staged.token,
                    owner=insertion.owner,
                    acl=insertion.acl,
                ),
                replaced,
                staged.path,
            )
        staged.close()
        return stored

    def _replaceable(self, insertion: Insertion) -> ObjectRecord | None:
        """The live object that the insertion may replace. Raises as `put`."""
        replaced = self.find(insertion.bucket, insertion.name)
        insertion.conditions.check_write(replaced)
        if replaced and insertion.if_replaced:
            raise insertion.if_replaced
        return replaced

    def _record_with(
        self, new: ObjectRecord, replaced: ObjectRecord | None, path: Path, source: ObjectRecord | None = None
    ) -> ObjectRecord:
        """Record a new generation in place of `replaced`, and of its `source`, and move its bytes from `path` into place.

        Call with the catalog's lock, so that no caller sees the record without its file.
        """
        with self.changing() as now_us:
            kept = self._keep(replaced, now_us) if replaced else None
            plain = is_plain(new.name) and self.folder(new.bucket).has_room_for(new.name)
            stored = dataclasses.replace(
                new,
                generation=self.catalog.next_generation(now_us),
                created_us=now_us,
                updated_us=now_us,
                aside="" if plain else new.token,
            )
            if source:
                self.catalog.remove(source)
                self.notifications.owe(DELETE, source, now_us=now_us)
            self.record(stored, replaced, now_us=now_us, kept=kept)
        stored = self._place(stored, path)
        if not kept:
            self.forget_bytes(replaced, stored)
        return with_retention(stored, self.bucket(stored.bucket))

    def record(
        self,
        stored: ObjectRecord,
        replaced: ObjectRecord | None,
        *,
        now_us: int,
        kept: ObjectRecord | None = None,
    ) -> None:
        """Record a new generation and its notifications; `kept` is what stays of the replaced one. Call inside `changing`."""
        self.catalog.put(stored)
        before = replaced.generation if replaced else 0
        self.notifications.owe(FINALIZE, stored, now_us=now_us, overwroteGeneration=before)
        if replaced:
            by = stored.generation
            self.notifications.owe(_end_of(kept), replaced, now_us=now_us, overwrittenByGeneration=by)

    def patch(self, target: ObjectTarget, change: Callable[[ObjectRecord], ObjectRecord]) -> ObjectRecord:
        """Change only a generation's metadata. Raises `RefusedError` (404, 412)."""
        with self.changing() as now_us:
            before = self.get(target)
            target.conditions.check_write(before)
            changed = dataclasses.replace(
                change(before), metageneration=before.metageneration + 1, updated_us=now_us
            )
            if before.fields.get("eventBasedHold") and not changed.fields.get("eventBasedHold"):
                changed = dataclasses.replace(changed, released_us=now_us)
            self.catalog.put(changed)
            self.notifications.owe(METADATA_UPDATE, changed, now_us=now_us)
            return with_retention(changed, self.bucket(target.bucket))

    def delete(self, target: ObjectTarget) -> None:
        """Remove the object, or the generation. Raises `RefusedError` (403, 404, 412)."""
        with self.catalog.lock:
            try:
                with self.changing() as now_us:
                    stored = self.get(target)
                    target.conditions.check_write(stored)
                    self.catalog.remove(stored)
                    kept = self._keep(stored, now_us, for_good=target.generation is not None)
                    self.notifications.owe(_end_of(kept), stored, now_us=now_us)
                    if not stored.aside:
                        # Before the commit: a kill in between leaves the file missing, which the next start treats as
                        # a deletion, unless it finds the bytes aside.
                        self.folder(stored.bucket).remove(stored.name)
            except OSError:
                self._clear_aside()
                raise
        if not kept:
            self.forget_bytes(stored, None)

    def move(self, source: ObjectTarget, insertion: Insertion) -> ObjectRecord:
        """Rename the live object within its bucket; `insertion` has the new name, and the conditions on what has it.

        The source leaves no older generation. Raises as `put` and `delete`.
        """
        with self.catalog.lock:
            stored = self.get(source)
            source.conditions.check_write(stored)
            replaced = self._replaceable(insertion)
            old_generation(stored, self.bucket(stored.bucket), self.now_us(), for_good=True)
            with self._move_bytes(stored, self.uploads_path) as path:
                moved = dataclasses.replace(
                    stored, name=insertion.name, metageneration=1, token=path.name, released_us=0
                )
                return self._record_with(moved, replaced, path, source=stored)

    def _keep(self, stored: ObjectRecord, now_us: int, *, for_good: bool = False) -> ObjectRecord | None:
        """Record what stays of a generation that is about to be replaced or deleted; None if nothing does.

        Nothing stays of bytes that another process has changed. Call inside `changing`. Raises `RefusedError` (403).
        """
        kept = old_generation(stored, self.bucket(stored.bucket), now_us, for_good=for_good)
        if kept and not kept.aside:
            folder = self.folder(kept.bucket)
            if folder.fingerprint(kept.name) != kept.fingerprint:
                return None
            kept = dataclasses.replace(kept, aside=str(kept.generation))
            folder.link(kept.name, self._aside / kept.aside)
        if kept:
            self.catalog.put(kept)
        return kept

    @contextlib.contextmanager
    def _move_bytes(self, stored: ObjectRecord, to: Path) -> Iterator[Path]:
        """Where a live object's bytes are in the folder `to` during the block; they go back if it fails."""
        path = to / str(stored.generation)
        if stored.aside:
            (self._aside / stored.aside).rename(path)
        else:
            self.folder(stored.bucket).take(stored.name, path)
        try:
            yield path
        except BaseException:
            live = self.catalog.find(stored.bucket, stored.name)
            if live and live.generation == stored.generation:
                self._place(stored, path)
            raise

    def _place(self, stored: ObjectRecord, staged: Path) -> ObjectRecord:
        if stored.aside:
            staged.rename(self._aside / stored.aside)
            return stored
        self._own_changes.append((stored.bucket, stored.name, stored.fingerprint))
        try:
            self.folder(stored.bucket).place(staged, stored.name)
        except OSError:  # a directory has just taken its place; keep the object aside
            stored = dataclasses.replace(stored, aside=stored.token or staged.name)
            self.catalog.put(stored)
            staged.rename(self._aside / stored.aside)
        return stored

    def forget_bytes(self, replaced: ObjectRecord | None, by: ObjectRecord | None) -> None:
        """Remove the bytes of a replaced object that was kept aside."""
        if replaced and replaced.aside and (by is None or by.aside != replaced.aside):
            with contextlib.suppress(FileNotFoundError):
                (self._aside / replaced.aside).unlink()

    def _recover(self) -> None:
        for staged in list(self.uploads_path.iterdir()):
            stored = self.catalog.with_token(staged.name)
            if stored is None:
                staged.unlink()
            else:
                self._place(stored, staged)
        self.catalog.remove_expired(self.now_us())
        self._clear_aside()

    def _clear_aside(self) -> None:
        """Remove bytes of no generation, unless they are a live object's that a change was to move aside."""
        kept = self.catalog.asides()
        for orphan in [path for path in self._aside.iterdir() if path.name not in kept]:
            live = self.catalog.with_token(orphan.name)
            if live and not live.aside and not self.folder(live.bucket).fingerprint(live.name):
                self._place(live, orphan)
            else:
                orphan.unlink()


def _end_of(kept: ObjectRecord | None) -> str:
    """The event of a generation that is no longer live."""
    return ARCHIVE if kept and not kept.soft_deleted_us else DELETE
