"""The records of buckets and objects, in SQLite."""

import heapq
import json
from functools import lru_cache
from pathlib import Path

from trainstack.outbox import OUTBOX_SCHEMA
from trainstack.sqlite import Database
from trainstack.storage.objects.names import after, folder_of
from trainstack.storage.objects.records import BucketRecord, Fingerprint, ObjectRecord

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
  bucket TEXT NOT NULL, name TEXT NOT NULL, folder TEXT NOT NULL, token TEXT NOT NULL, aside TEXT NOT NULL,
  seen TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (bucket, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS objects_by_folder ON objects (bucket, folder) WHERE aside = '';
CREATE TABLE IF NOT EXISTS old_generations (
  bucket TEXT NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL, hard_delete_us INTEGER NOT NULL,
  aside TEXT NOT NULL, seen TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (bucket, name, generation)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS generations (last INTEGER NOT NULL);
INSERT INTO generations SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM generations);
CREATE TABLE IF NOT EXISTS notification_configs (
  bucket TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (bucket, id)
) WITHOUT ROWID;
{OUTBOX_SCHEMA}
"""  # noqa: S608  # constants

_NEVER_US = 2**62
_NOT_IN_BODY = ("fingerprint", "retained_us")
_SELECT_OBJECT = "SELECT seen, body FROM objects"


class Catalog(Database):
    """Maps rows to records."""

    def __init__(self, path: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another process has this file open.
        """
        super().__init__(path, _SCHEMA)
        self._buckets: dict[str, BucketRecord] = {}

    def next_generation(self, now_us: int) -> int:
        """Microseconds since the epoch, but always larger than every earlier number, even if the clock goes back."""
        rows = self.rows("UPDATE generations SET last = max(last + 1, ?) RETURNING last", (now_us,))
        return int(rows[0][0])

    def find_bucket(self, name: str) -> BucketRecord | None:
        with self.lock:
            if name not in self._buckets:
                row = self.row("SELECT body FROM buckets WHERE name = ?", (name,))
                if not row:
                    return None
                self._buckets[name] = BucketRecord(**json.loads(row[0]))
            return self._buckets[name]

    def buckets(self) -> list[BucketRecord]:
        """All buckets, in order of name."""
        rows = self.rows("SELECT body FROM buckets ORDER BY name")
        return [BucketRecord(**json.loads(body)) for (body,) in rows]

    def put_bucket(self, bucket: BucketRecord) -> None:
        self._buckets.pop(bucket.name, None)
        self.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?)", (bucket.name, json.dumps(vars(bucket))))

    def remove_bucket(self, name: str) -> None:
        """Remove an empty bucket, and what is soft-deleted in it."""
        self._buckets.pop(name, None)
        self.execute("DELETE FROM old_generations WHERE bucket = ?", (name,))
        self.execute("DELETE FROM notification_configs WHERE bucket = ?", (name,))
        self.execute("DELETE FROM buckets WHERE name = ?", (name,))

    def find(self, bucket: str, name: str) -> ObjectRecord | None:
        row = self.row(f"{_SELECT_OBJECT} WHERE bucket = ? AND name = ?", (bucket, name))
        return _object(row) if row else None

    def find_old(self, bucket: str, name: str, generation: int) -> ObjectRecord | None:
        """A noncurrent or soft-deleted generation."""
        row = self.row(
            "SELECT seen, body FROM old_generations WHERE bucket = ? AND name = ? AND generation = ?",
            (bucket, name, generation),
        )
        return _object(row) if row else None

    def find_any(self, bucket: str, name: str, generation: str) -> ObjectRecord | None:
        """The generation of this number, live or not; the live one for a text that is none."""
        old = self.find_old(bucket, name, int(generation[:18])) if generation.isdecimal() else None
        return old or self.find(bucket, name)

    def put(self, stored: ObjectRecord) -> None:
        """Record a generation, live or not, in place of its earlier record."""
        body = {key: value for key, value in vars(stored).items() if value and key not in _NOT_IN_BODY}
        values = (stored.aside, json.dumps(stored.fingerprint._asdict()), json.dumps(body))
        if stored.is_live:
            key = (stored.bucket, stored.name, folder_of(stored.name), stored.token)
            self.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, *values))
        else:
            old_key = (stored.bucket, stored.name, stored.generation, stored.hard_delete_us)
            self.execute(
                "INSERT OR REPLACE INTO old_generations VALUES (?, ?, ?, ?, ?, ?, ?)", (*old_key, *values)
            )

    def remove(self, stored: ObjectRecord) -> None:
        key = (stored.bucket, stored.name)
        if stored.is_live:
            self.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", key)
        else:
            self.execute(
                "DELETE FROM old_generations WHERE bucket = ? AND name = ? AND generation = ?",
                (*key, stored.generation),
            )

    def remove_expired(self, now_us: int) -> None:
        """Remove what has been soft-deleted for its bucket's whole duration."""
        self.execute(
            "DELETE FROM old_generations WHERE hard_delete_us > 0 AND hard_delete_us <= ?", (now_us,)
        )

    def scan(self, bucket: str, *, start: str, end: str, limit: int) -> list[ObjectRecord]:
        """Objects from `start` up to but not including `end` (empty: no end), in order of their UTF-8 bytes."""
        rows = self.rows(
            f"{_SELECT_OBJECT} WHERE bucket = ? AND name >= ? AND (? = '' OR name < ?) ORDER BY name LIMIT ?",
            (bucket, start, end, end, limit),
        )
        return [_object(row) for row in rows]

    def scan_generations(
        self, bucket: str, *, start: str, end: str, limit: int, restorable_us: int
    ) -> list[ObjectRecord]:
        """Every generation from `start`, a name or a position of `list_page`, in order of names, then of generations.

        All that are soft-deleted and can be restored at that time; with 0, all that are not soft-deleted.
        """
        name, _, number = start.rpartition("\0")
        first = (name, int(number)) if number.isdigit() and name else (start, 0)
        rows = self.rows(
            "SELECT seen, body FROM old_generations WHERE bucket = ? AND (name, generation) >= (?, ?)"
            " AND (? = '' OR name < ?) AND hard_delete_us BETWEEN ? AND ? ORDER BY name, generation LIMIT ?",
            (bucket, *first, end, end, restorable_us, _NEVER_US if restorable_us else 0, limit),
        )
        old = [_object(row) for row in rows]
        live = [] if restorable_us else self.scan(bucket, start=first[0], end=end, limit=limit + 1)
        merged = heapq.merge(live, old, key=lambda stored: (stored.name, stored.generation))
        return [stored for stored in merged if (stored.name, stored.generation) >= first][:limit]

    def is_empty(self, bucket: str) -> bool:
        """Whether the bucket has no object; soft-deleted ones do not count."""
        return self.row("SELECT 1 FROM objects WHERE bucket = ? LIMIT 1", (bucket,)) is None and not self.row(
            "SELECT 1 FROM old_generations WHERE bucket = ? AND hard_delete_us = 0 LIMIT 1", (bucket,)
        )

    def plain_in_folder(self, bucket: str, folder: str) -> dict[str, Fingerprint]:
        """The plain files recorded directly in one folder, by object name."""
        rows = self.rows(
            "SELECT name, seen FROM objects WHERE bucket = ? AND folder = ? AND aside = ''", (bucket, folder)
        )
        return {name: Fingerprint(**json.loads(fingerprint)) for name, fingerprint in rows}

    def folders(self, bucket: str, prefix: str) -> set[str]:
        """Every folder below `prefix` with recorded plain files.

        Costs one index look-up per folder, not per file.
        """
        end = after(prefix) if prefix else "\U0010ffff"
        step = "SELECT min(folder) FROM objects WHERE bucket = :b AND aside = '' AND folder < :end AND folder"
        rows = self.rows(
            f"WITH RECURSIVE each(folder) AS ({step} >= :start"  # noqa: S608  # a constant
            f" UNION ALL SELECT ({step} > each.folder) FROM each WHERE each.folder IS NOT NULL)"
            " SELECT folder FROM each WHERE folder IS NOT NULL",
            {"b": bucket, "start": prefix, "end": end},
        )
        return {folder for (folder,) in rows}

    def asides(self) -> set[str]:
        rows = self.rows(
            "SELECT aside FROM objects WHERE aside != '' UNION SELECT aside FROM old_generations"
        )
        return {aside for (aside,) in rows}

    def with_token(self, token: str) -> ObjectRecord | None:
        """The live object whose bytes were staged under this token, or moved away under its generation.

        Scans the table; only for recovery.
        """
        row = self.row(
            f"{_SELECT_OBJECT} WHERE token = ?1 OR json_extract(body, '$.generation') || '' = ?1", (token,)
        )
        return _object(row) if row else None


@lru_cache(maxsize=2048)  # a page of a listing, and what is read again and again
def _object(row: tuple[str, str]) -> ObjectRecord:
    fingerprint, body = row
    return ObjectRecord(**json.loads(body), fingerprint=Fingerprint(**json.loads(fingerprint)))
