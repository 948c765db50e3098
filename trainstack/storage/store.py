"""Objects and their files, changed together: every change is atomic, survives a kill, and respects its preconditions.

The record is written before the staged file is renamed into place. After a kill in between, the next start finishes
the rename; in the other order the object would come back as a foreign file, without its metadata.
"""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trainstack.storage.notifications import Notifications
from trainstack.storage.objects.catalog import Catalog
from trainstack.storage.objects.errors import (
    NoSuchObjectError,
    UnsettledError,
    being_written,
    invalid,
    no_such_bucket,
)
from trainstack.storage.objects.folder import Folder, fingerprint_of
from trainstack.storage.objects.names import is_plain, object_fault
from trainstack.storage.objects.preconditions import Insertion, ObjectTarget
from trainstack.storage.objects.records import BucketRecord, Fingerprint, ObjectRecord
from trainstack.storage.objects.staging import Staged


class ObjectStore:
    """One directory of buckets. Thread-safe; only one process at a time may have it open.

    A write commits the record first, naming the staged file, and then moves that file into place; a start
    after a kill finishes pending moves. So a record always has its bytes. Methods on one object raise
    `UnsettledError` if its file does not match its record: another process wrote, replaced or removed it, and
    `DropScanner.look` must record that first. With `strict=False`, they use the record instead, for files
    that are still being written.
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

    def forget_folder(self, bucket: str) -> None:
        self._folders.pop(bucket, None)

    def bucket(self, name: str) -> BucketRecord:
        """Raises `RefusedError` (404) when there is no such bucket."""
        stored = self.catalog.find_bucket(name)
        if stored is None:
            raise no_such_bucket(name)
        return stored

    def find(self, bucket: str, name: str, *, strict: bool = True) -> ObjectRecord | None:
        """The live object, or None.

        Raises `RefusedError` (404) for a missing bucket, `UnsettledError`.
        """
        with self.catalog.lock:
            folder = self.folder(bucket)
            live = self.catalog.find(bucket, name)
            if strict and not _agrees(live, folder.fingerprint(name) if is_plain(name) else None):
                raise UnsettledError(bucket, name)
            return live

    def get(self, target: ObjectTarget, *, strict: bool = True) -> ObjectRecord:
        """The live object.

        Raises `RefusedError` (404) if it, or the requested generation, is not live; `UnsettledError`.
        """
        live = self.find(target.bucket, target.name, strict=strict)
        if live is None or target.generation not in {None, live.generation}:
            raise NoSuchObjectError(target.bucket, target.name)
        return live

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

    def put(
        self, staged: Staged, insertion: Insertion, *, composite: bool = False, strict: bool = True
    ) -> ObjectRecord:
        """Create a new live generation from the staged bytes. A composite has no MD5.

        Raises:
            RefusedError: 400 for an invalid object name, 403 for an object that the caller must not replace,
                404 for a missing bucket, 412 for a condition that does not hold.
        """
        bucket, name = insertion.bucket, insertion.name
        if fault := object_fault(name):
            raise invalid(fault)
        with self.catalog.lock:
            with self.changing() as now_us:
                replaced = self.find(bucket, name, strict=strict)
                insertion.conditions.check_write(replaced)
                if replaced and insertion.if_replaced:
                    raise insertion.if_replaced
                plain = is_plain(name) and self.folder(bucket).has_room_for(name)
                stored = ObjectRecord(
                    bucket=bucket,
                    name=name,
                    generation=self.catalog.next_generation(now_us),
                    fingerprint=staged.fingerprint(),
                    md5="" if composite else staged.digest.md5,
                    crc32c=staged.digest.crc32c,
                    content_type=insertion.content_type,
                    created_us=now_us,
                    updated_us=now_us,
                    fields=insertion.fields,
                    token=staged.token,
                    aside="" if plain else staged.token,
                )
                self.record(stored, replaced, now_us=now_us)
            # Still under the lock, so no caller sees the record without its file.
            stored = self._place(stored, staged.path)
            self.forget_bytes(replaced, stored)
        staged.close()
        return stored

    def record(self, stored: ObjectRecord, replaced: ObjectRecord | None, *, now_us: int) -> None:
        """Record a new generation and its notifications. Call inside `changing`."""
        self.catalog.put(stored)
        self.notifications.owe(stored, now_us=now_us, overwrote=replaced.generation if replaced else 0)

    def patch(
        self, target: ObjectTarget, change: Callable[[ObjectRecord], ObjectRecord], *, strict: bool = True
    ) -> ObjectRecord:
        """Change only an object's metadata. Raises `RefusedError` (404, 412), `UnsettledError`."""
        with self.changing() as now_us:
            live = self.get(target, strict=strict)
            target.conditions.check_write(live)
            changed = dataclasses.replace(
                change(live), metageneration=live.metageneration + 1, updated_us=now_us
            )
            self.catalog.put(changed)
            return changed

    def delete(self, target: ObjectTarget, *, strict: bool = True) -> None:
        """Remove the object. Raises `RefusedError` (404, 412), `UnsettledError`."""
        with self.changing():
            live = self.get(target, strict=strict)
            target.conditions.check_write(live)
            if not live.aside:
                # Before the commit: a kill in between leaves the file missing, which the next start treats as
                # a deletion.
                self.folder(live.bucket).remove(live.name)
            self.catalog.remove(live.bucket, live.name)
        self.forget_bytes(live, None)

    def _place(self, stored: ObjectRecord, staged: Path) -> ObjectRecord:
        if stored.aside:
            staged.rename(self._aside / stored.aside)
            return stored
        try:
            self.folder(stored.bucket).place(staged, stored.name)
        except OSError:  # a directory has just taken its place; keep the object aside
            stored = dataclasses.replace(stored, aside=stored.token)
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
        kept = self.catalog.asides()
        for orphan in list(self._aside.iterdir()):
            if orphan.name not in kept:
                orphan.unlink()


def _agrees(live: ObjectRecord | None, fingerprint: Fingerprint | None) -> bool:
    """Whether the file matches its record: an object kept aside, or a missing object, must have no file."""
    return fingerprint == (live.fingerprint if live and not live.aside else None)
