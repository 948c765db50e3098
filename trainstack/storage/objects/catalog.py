"""The records of buckets and objects, in SQLite."""

import json
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
CREATE TABLE IF NOT EXISTS generations (last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS notification_configs (
  bucket TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (bucket, id)
) WITHOUT ROWID;
{OUTBOX_SCHEMA}
"""

_SELECT_OBJECT = "SELECT seen, body FROM objects"


class Catalog(Database):
    """Maps rows to records."""

    def __init__(self, path: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another process has this file open.
        """
        super().__init__(path, _SCHEMA)

    def next_generation(self, now_us: int) -> int:
        """Microseconds since the epoch, but always larger than every earlier number, even if the clock goes back."""
        self.execute("UPDATE generations SET last = max(last + 1, ?)", (now_us,))
        if row := self.row("SELECT last FROM generations"):
            return int(row[0])
        self.execute("INSERT INTO generations VALUES (?)", (now_us,))
        return now_us

    def find_bucket(self, name: str) -> BucketRecord | None:
        row = self.row("SELECT body FROM buckets WHERE name = ?", (name,))
        return BucketRecord(**json.loads(row[0])) if row else None

    def buckets(self) -> list[BucketRecord]:
        """All buckets, in order of name."""
        rows = self.rows("SELECT body FROM buckets ORDER BY name")
        return [BucketRecord(**json.loads(body)) for (body,) in rows]

    def put_bucket(self, bucket: BucketRecord) -> None:
        self.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?)", (bucket.name, json.dumps(vars(bucket))))

    def remove_bucket(self, name: str) -> None:
        self.execute("DELETE FROM notification_configs WHERE bucket = ?", (name,))
        self.execute("DELETE FROM buckets WHERE name = ?", (name,))

    def find(self, bucket: str, name: str) -> ObjectRecord | None:
        row = self.row(f"{_SELECT_OBJECT} WHERE bucket = ? AND name = ?", (bucket, name))
        return _object(row) if row else None

    def put(self, stored: ObjectRecord) -> None:
        body = {key: value for key, value in vars(stored).items() if key != "fingerprint"}
        fingerprint = json.dumps(vars(stored.fingerprint))
        key = (stored.bucket, stored.name, folder_of(stored.name), stored.token, stored.aside)
        self.execute(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*key, fingerprint, json.dumps(body)),
        )

    def remove(self, bucket: str, name: str) -> None:
        self.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket, name))

    def scan(self, bucket: str, *, start: str, end: str, limit: int) -> list[ObjectRecord]:
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
        return {aside for (aside,) in self.rows("SELECT aside FROM objects WHERE aside != ''")}

    def with_token(self, token: str) -> ObjectRecord | None:
        """The object whose bytes were staged under this token. Scans the table; only for recovery."""
        row = self.row(f"{_SELECT_OBJECT} WHERE token = ?", (token,))
        return _object(row) if row else None


def _object(row: tuple[str, str]) -> ObjectRecord:
    fingerprint, body = row
    return ObjectRecord(**json.loads(body), fingerprint=Fingerprint(**json.loads(fingerprint)))
