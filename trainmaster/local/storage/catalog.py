"""The records of buckets and objects, in SQLite. One connection; the store's lock guards every use of it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainmaster.local.storage.names import after, folder_of
from trainmaster.local.storage.records import Bucket, Fingerprint, StoredObject

_SCHEMA = """
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
  bucket TEXT NOT NULL, id INTEGER NOT NULL, topic TEXT NOT NULL, event_types TEXT NOT NULL,
  prefix TEXT NOT NULL, attributes TEXT NOT NULL, payload INTEGER NOT NULL,
  PRIMARY KEY (bucket, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, attributes TEXT NOT NULL, resource TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_by_topic ON outbox (topic, id);
CREATE TABLE IF NOT EXISTS uploads (
  id TEXT PRIMARY KEY, bucket TEXT NOT NULL, request TEXT NOT NULL, created_us INTEGER NOT NULL, result TEXT NOT NULL
) WITHOUT ROWID;
"""

_OBJECT = (
    "bucket, name, generation, metageneration, size, mtime_ns, inode, md5, crc32c, content_type,"
    " created_us, updated_us, fields, token, aside"
)


class Catalog:
    """Rows in, records out. Every method but `changing` is one statement."""

    def __init__(self, path: Path) -> None:
        """Open or create.

        Journal in WAL mode, synchronous NORMAL: a killed process loses nothing,
        a power failure may lose the last moments.
        """
        # The store's lock serialises the threads that share this connection.
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.executescript(_SCHEMA)

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A transaction: all of the block's statements, or none of them."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def next_generation(self, now_us: int) -> int:
        """Microseconds since the epoch, and larger than any number given before, whatever the clock says."""
        row = self.db.execute("SELECT last FROM generations").fetchone()
        if row is None:
            self.db.execute("INSERT INTO generations VALUES (?)", (now_us,))
            return now_us
        generation = max(now_us, int(row[0]) + 1)
        self.db.execute("UPDATE generations SET last = ?", (generation,))
        return generation

    def find_bucket(self, name: str) -> Bucket | None:
        row = self.db.execute("SELECT * FROM buckets WHERE name = ?", (name,)).fetchone()
        return _bucket(row) if row else None

    def buckets(self, *, project: str = "", prefix: str = "") -> list[Bucket]:
        """In order of name; an empty project means any."""
        rows = self.db.execute(
            "SELECT * FROM buckets WHERE (? = '' OR project = ?) AND substr(name, 1, ?) = ? ORDER BY name",
            (project, project, len(prefix), prefix),
        )
        return [_bucket(row) for row in rows]

    def put_bucket(self, bucket: Bucket) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?, ?, ?)",
            (
                bucket.name,
                bucket.project,
                bucket.metageneration,
                bucket.created_us,
                bucket.updated_us,
                json.dumps(bucket.fields),
            ),
        )

    def remove_bucket(self, name: str) -> None:
        for table, column in (("notification_configs", "bucket"), ("uploads", "bucket"), ("buckets", "name")):
            self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608  # constants above

    def find(self, bucket: str, name: str) -> StoredObject | None:
        row = self.db.execute(
            f"SELECT {_OBJECT} FROM objects WHERE bucket = ? AND name = ?",  # noqa: S608  # a constant
            (bucket, name),
        ).fetchone()
        return _object(row) if row else None

    def put(self, stored: StoredObject) -> None:
        seen = stored.fingerprint
        self.db.execute(
            f"INSERT OR REPLACE INTO objects ({_OBJECT}, folder) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",  # noqa: S608
            (
                *(stored.bucket, stored.name, stored.generation, stored.metageneration),
                *(seen.size, seen.mtime_ns, seen.inode, stored.md5, stored.crc32c, stored.content_type),
                *(
                    stored.created_us,
                    stored.updated_us,
                    json.dumps(stored.fields),
                    stored.token,
                    stored.aside,
                ),
                folder_of(stored.name),
            ),
        )

    def remove(self, bucket: str, name: str) -> None:
        self.db.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket, name))

    def scan(self, bucket: str, *, start: str, end: str, limit: int) -> list[StoredObject]:
        """Objects from `start` up to but not including `end` (empty: no end), in order of their UTF-8 bytes."""
        rows = self.db.execute(
            f"SELECT {_OBJECT} FROM objects WHERE bucket = ? AND name >= ? AND (? = '' OR name < ?)"  # noqa: S608
            " ORDER BY name LIMIT ?",
            (bucket, start, end, end, limit),
        )
        return [_object(row) for row in rows]

    def is_empty(self, bucket: str) -> bool:
        return self.db.execute("SELECT 1 FROM objects WHERE bucket = ? LIMIT 1", (bucket,)).fetchone() is None

    def plain_in_folder(self, bucket: str, folder: str) -> dict[str, Fingerprint]:
        """The plain files recorded directly in one folder, by object name."""
        rows = self.db.execute(
            "SELECT name, size, mtime_ns, inode FROM objects WHERE bucket = ? AND folder = ? AND aside = ''",
            (bucket, folder),
        )
        return {
            name: Fingerprint(size=size, mtime_ns=mtime_ns, inode=inode)
            for name, size, mtime_ns, inode in rows
        }

    def folders(self, bucket: str, prefix: str) -> set[str]:
        """Every folder below `prefix` that has plain files on record. Costs one index step per folder, not per file."""
        end = after(prefix) if prefix else "\U0010ffff"
        step = "SELECT min(folder) FROM objects WHERE bucket = :b AND aside = '' AND folder < :end AND folder"
        rows = self.db.execute(
            f"WITH RECURSIVE each(folder) AS ({step} >= :start"  # noqa: S608  # a constant
            f" UNION ALL SELECT ({step} > each.folder) FROM each WHERE each.folder IS NOT NULL)"
            " SELECT folder FROM each WHERE folder IS NOT NULL",
            {"b": bucket, "start": prefix, "end": end},
        )
        return {folder for (folder,) in rows}

    def asides(self) -> set[str]:
        return {aside for (aside,) in self.db.execute("SELECT aside FROM objects WHERE aside != ''")}

    def with_token(self, token: str) -> StoredObject | None:
        """The object whose bytes were staged under this token. Scans the table; for recovery alone."""
        row = self.db.execute(f"SELECT {_OBJECT} FROM objects WHERE token = ?", (token,)).fetchone()  # noqa: S608
        return _object(row) if row else None


def _bucket(row: tuple[str, str, int, int, int, str]) -> Bucket:
    name, project, metageneration, created_us, updated_us, fields = row
    return Bucket(
        name=name,
        project=project,
        metageneration=metageneration,
        created_us=created_us,
        updated_us=updated_us,
        fields=json.loads(fields),
    )


def _object(
    row: tuple[str, str, int, int, int, int, int, str, str, str, int, int, str, str, str],
) -> StoredObject:
    bucket, name, generation, metageneration, size, mtime_ns, inode, *_ = row
    *_, md5, crc32c, content_type, created_us, updated_us, fields, token, aside = row
    return StoredObject(
        bucket=bucket,
        name=name,
        generation=generation,
        metageneration=metageneration,
        fingerprint=Fingerprint(size=size, mtime_ns=mtime_ns, inode=inode),
        md5=md5,
        crc32c=crc32c,
        content_type=content_type,
        created_us=created_us,
        updated_us=updated_us,
        fields=json.loads(fields),
        token=token,
        aside=aside,
    )
