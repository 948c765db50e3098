"""Entries, sinks, metrics and the sinks' unpublished messages on disk: one SQLite file that survives a kill at any time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from trainstack.logging.entry import StoredEntry
from trainstack.logging.filters.fields import fold
from trainstack.logging.filters.parse import Bound
from trainstack.outbox import OUTBOX_SCHEMA
from trainstack.sqlite import Database

Kind: TypeAlias = Literal["sinks", "metrics"]
_CHUNK = 1000
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, parent TEXT NOT NULL, timestamp INTEGER NOT NULL, insert_id TEXT NOT NULL,
    severity INTEGER NOT NULL, log_name TEXT NOT NULL, job_id TEXT NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS entries_once ON entries (parent, insert_id, timestamp, log_name);
CREATE INDEX IF NOT EXISTS entries_by_time ON entries (parent, timestamp);
CREATE INDEX IF NOT EXISTS entries_by_job ON entries (parent, job_id, timestamp) WHERE job_id <> '';
CREATE INDEX IF NOT EXISTS entries_by_log ON entries (parent, log_name, timestamp);
CREATE TABLE IF NOT EXISTS sinks (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metrics (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
{OUTBOX_SCHEMA}
"""


class EntryPosition(NamedTuple):
    """A position in the order of entries: by time, then by arrival."""

    timestamp_ns: int
    id: int


class LogStore(Database):
    """The file `logging.sqlite3` in a folder."""

    def __init__(self, folder: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another emulator uses this folder.
        """
        super().__init__(folder / "logging.sqlite3", _SCHEMA)

    def add(self, entries: Sequence[StoredEntry]) -> None:
        """Store entries, each once by insertId and time."""
        self.executemany(
            "INSERT OR IGNORE INTO entries (parent, timestamp, insert_id, severity, log_name, job_id, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(one.parent, one.timestamp_ns, *one.columns, one.json) for one in entries],
        )

    def scan(
        self,
        parents: Sequence[str],
        bounds: Sequence[Bound],
        *,
        descending: bool,
        after: EntryPosition | None,
    ) -> Iterator[tuple[EntryPosition, dict[str, object], int]]:
        """Entries within the bounds in order of time, after a position, each with its size in characters of JSON.

        Reads in chunks, so that concurrent writes do not affect it and writers are not locked out for long.
        """
        # With one parent, equality lets an index give the order; several need a sort.
        marks = ",".join("?" * len(parents))
        where = ["parent = ?" if len(parents) == 1 else f"parent IN ({marks})"]
        where += [condition for condition, _ in bounds]
        order, beyond = ("DESC", "<") if descending else ("ASC", ">")
        while True:
            conditions = [*where, f"(timestamp, id) {beyond} (?, ?)"] if after else where
            chunk = self.rows(
                f"SELECT id, timestamp, body FROM entries WHERE {' AND '.join(conditions)}"  # noqa: S608  # values are bound
                f" ORDER BY timestamp {order}, id {order} LIMIT {_CHUNK}",
                [*parents, *(value for _, value in bounds), *(after or ())],
            )
            if not chunk:
                return
            for row_id, timestamp, body in chunk:
                after = EntryPosition(timestamp, row_id)
                yield after, json.loads(body), len(body)

    def drop_before(self, timestamp_ns: int) -> None:
        self.execute("DELETE FROM entries WHERE timestamp < ?", (timestamp_ns,))

    def count(self) -> int:
        return int(self.row("SELECT count(*) FROM entries")[0])

    def logs(self, parent: str) -> list[str]:
        """The names of the logs with entries, in order."""
        rows = self.rows(
            "SELECT json_extract(body, '$.logName') FROM entries WHERE id IN"
            " (SELECT min(id) FROM entries WHERE parent = ? GROUP BY log_name) ORDER BY 1",
            (parent,),
        )
        return [name for (name,) in rows]

    def delete_log(self, parent: str, log_name: str) -> int:
        """The number of entries deleted."""
        where = (parent, fold(log_name))
        return self.execute("DELETE FROM entries WHERE parent = ? AND log_name = ?", where).rowcount

    def resources(self, kind: Kind) -> dict[str, dict[str, object]]:
        """By full name."""
        rows = self.rows(f"SELECT name, body FROM {kind}")  # noqa: S608  # one of two names
        return {name: json.loads(body) for name, body in rows}

    def put(self, kind: Kind, name: str, resource: Mapping[str, object]) -> None:
        self.execute(f"INSERT OR REPLACE INTO {kind} VALUES (?, ?)", (name, json.dumps(resource)))  # noqa: S608  # as above

    def delete(self, kind: Kind, name: str) -> None:
        self.execute(f"DELETE FROM {kind} WHERE name = ?", (name,))  # noqa: S608  # as above
