"""The records of buckets and objects, in SQLite."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmaster.local.outbox import OUTBOX_SCHEMA
from trainmaster.local.sqlite import Database
from trainmaster.local.storage.objects.names import after, folder_of
from trainmaster.local.storage.objects.records import Bucket, Fingerprint, StoredObject

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS buckets (
  name TEXT PRIMARY KEY, project TEXT NOT NULL, metageneration INTEGER NOT NULL,
  created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, fields TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
  bucket TEXT NOT NULL, name TEXT NOT NULL, folder TEXT NOT NULL,
  generation INTEGER NOT NULL, metageneration INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  md5 TEXT NOT NULL, crc32c TEXT NOT NULL, content_type TEXT NOT NULL,
  created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL,
  fields TEXT NOT NULL, token TEXT NOT NULL, aside TEXT NOT NULL,
  PRIMARY KEY (bucket, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS objects_by_folder ON objects (bucket, folder) WHERE aside = '';
CREATE TABLE IF NOT EXISTS generations (last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS notification_configs (
  bucket TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (bucket, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uploads (
  id TEXT PRIMARY KEY, bucket TEXT NOT NULL, request TEXT NOT NULL, created_us INTEGER NOT NULL, result TEXT NOT NULL
) WITHOUT ROWID;
{OUTBOX_SCHEMA}
"""

_FINGERPRINT = ("size", "mtime_ns", "inode")
_BUCKET = ("name", "project", "metageneration", "created_us", "updated_us", "fields")
_OBJECT = (
    *("bucket", "name", "generation", "metageneration", *_FINGERPRINT, "md5", "crc32c", "content_type"),
    *("created_us", "updated_us", "fields", "token", "aside"),
)
_SELECT_OBJECT = f"SELECT {', '.join(_OBJECT)} FROM objects"  # noqa: S608  # constants


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES (:{', :'.join(columns)})"  # noqa: S608


_PUT_BUCKET, _PUT_OBJECT = _insert("buckets", _BUCKET), _insert("objects", (*_OBJECT, "folder"))


class Catalog(Database):
    """Rows in, records out."""

    def __init__(self, path: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another process has this file open.
        """
        super().__init__(path, _SCHEMA)

    def next_generation(self, now_us: int) -> int:
        """Microseconds since the epoch, and larger than any number given before, whatever the clock says."""
        row = self.row("SELECT last FROM generations")
        generation = max(now_us, row[0] + 1) if row else now_us
        self.execute("DELETE FROM generations")
        self.execute("INSERT INTO generations VALUES (?)", (generation,))
        return generation

    def find_bucket(self, name: str) -> Bucket | None:
        return next(iter(self._buckets("name = ?", name)), None)

    def buckets(self, *, project: str = "", prefix: str = "") -> list[Bucket]:
        """In order of name; an empty project means any."""
        return self._buckets(
            "(? = '' OR project = ?) AND substr(name, 1, ?) = ?", project, project, len(prefix), prefix
        )

    def _buckets(self, where: str, *values: object) -> list[Bucket]:
        rows = self.rows(f"SELECT {', '.join(_BUCKET)} FROM buckets WHERE {where} ORDER BY name", values)  # noqa: S608
        return [
            Bucket(**{**dict(zip(_BUCKET, row, strict=True)), "fields": json.loads(row[-1])}) for row in rows
        ]

    def put_bucket(self, bucket: Bucket) -> None:
        self.execute(_PUT_BUCKET, {**vars(bucket), "fields": json.dumps(bucket.fields)})

    def remove_bucket(self, name: str) -> None:
        for table, column in (("notification_configs", "bucket"), ("uploads", "bucket"), ("buckets", "name")):
            self.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608  # constants above

    def find(self, bucket: str, name: str) -> StoredObject | None:
        row = self.row(f"{_SELECT_OBJECT} WHERE bucket = ? AND name = ?", (bucket, name))
        return _object(row) if row else None

    def put(self, stored: StoredObject) -> None:
        values = {**vars(stored), **vars(stored.fingerprint), "folder": folder_of(stored.name)}
        self.execute(_PUT_OBJECT, {**values, "fields": json.dumps(stored.fields)})

    def remove(self, bucket: str, name: str) -> None:
        self.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket, name))

    def scan(self, bucket: str, *, start: str, end: str, limit: int) -> list[StoredObject]:
        """Objects from `start` up to but not including `end` (empty: no end), in order of their UTF-8 bytes."""
        rows = self.rows(
            f"{_SELECT_OBJECT} WHERE bucket = ? AND name >= ? AND (? = '' OR name < ?) ORDER BY name LIMIT ?",
            (bucket, start, end, end, limit),
        )
        return [_object(row) for row in rows]

    def is_empty(self, bucket: str) -> bool:
        return self.row("SELECT 1 FROM objects WHERE bucket = ? LIMIT 1", (bucket,)) is None

    def plain_in_folder(self, bucket: str, folder: str) -> dict[str, Fingerprint]:
        """The plain files recorded directly in one folder, by object name."""
        rows = self.rows(
            "SELECT name, size, mtime_ns, inode FROM objects WHERE bucket = ? AND folder = ? AND aside = ''",
            (bucket, folder),
        )
        return {name: Fingerprint(**dict(zip(_FINGERPRINT, seen, strict=True))) for name, *seen in rows}

    def folders(self, bucket: str, prefix: str) -> set[str]:
        """Every folder below `prefix` that has plain files on record. Costs one index step per folder, not per file."""
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
        return {aside for (aside,) in self.rows("SELECT aside FROM objects WHERE aside != ''")}

    def with_token(self, token: str) -> StoredObject | None:
        """The object whose bytes were staged under this token. Scans the table; for recovery alone."""
        row = self.row(f"{_SELECT_OBJECT} WHERE token = ?", (token,))
        return _object(row) if row else None


# A row's columns have many types; the schema says which.
def _object(row: Sequence[Any]) -> StoredObject:
    values = dict(zip(_OBJECT, row, strict=True))
    seen = Fingerprint(**{key: values.pop(key) for key in _FINGERPRINT})
    return StoredObject(**{**values, "fields": json.loads(values["fields"])}, fingerprint=seen)
