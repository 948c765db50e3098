"""Entries, sinks and the outbox on disk: one SQLite file that survives a kill at any moment.

An entry and the messages that sinks owe for it are written in one transaction, so that a kill between
the two cannot happen.
"""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.logging.entry import Entry
from trainmaster.local.logging.filters.compare import fold
from trainmaster.local.logging.narrowing import Bounds
from trainmaster.local.sqlite import opened

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, parent TEXT NOT NULL, timestamp INTEGER NOT NULL, insert_id TEXT NOT NULL,
    severity INTEGER NOT NULL, log_name TEXT NOT NULL, job_id TEXT NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS entries_once ON entries (parent, insert_id, timestamp, log_name);
CREATE INDEX IF NOT EXISTS entries_by_time ON entries (parent, timestamp);
CREATE INDEX IF NOT EXISTS entries_by_job ON entries (parent, job_id, timestamp) WHERE job_id <> '';
CREATE INDEX IF NOT EXISTS entries_by_log ON entries (parent, log_name, timestamp);
CREATE TABLE IF NOT EXISTS sinks (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL, timestamp INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS outbox_by_sink ON outbox (sink, id);
"""


class StateInUseError(RuntimeError):
    """Another process holds the state folder."""


@dataclass(frozen=True, kw_only=True)
class Owed:
    """An entry that a sink still has to publish."""

    id: int
    timestamp_ns: int
    body: str


@dataclass(frozen=True, kw_only=True)
class Position:
    """A place in the order of entries: by time, then by arrival."""

    timestamp_ns: int
    id: int


class Store:
    """The file `logging.sqlite3` in a folder. Any thread may call; calls take turns."""

    def __init__(self, folder: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another emulator runs on this folder.
        """
        path = folder / "logging.sqlite3"
        self._lock = threading.RLock()
        try:
            self._db = opened(path, _SCHEMA, exclusive=True)
        except sqlite3.OperationalError as fault:
            raise StateInUseError(f"{path} is in use by another Logging emulator ({fault}).") from fault

    def close(self) -> None:
        """Safe to call twice."""
        with self._lock:
            self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing of the block's changes."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    # -- entries

    def add(self, entries: Sequence[Entry], owed: Sequence[tuple[str, Entry]]) -> None:
        """Keep entries, once each by insertId and time, and what sinks, by name, owe for them."""
        rows = [
            (
                one.parent,
                one.timestamp_ns,
                one.insert_id,
                one.severity,
                fold(one.log_name),
                fold(one.job_id),
                one.json,
            )
            for one in entries
        ]
        with self.transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO entries (parent, timestamp, insert_id, severity, log_name, job_id, body)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            self._db.executemany(
                "INSERT INTO outbox (sink, timestamp, body) VALUES (?, ?, ?)",
                [(sink, one.timestamp_ns, one.json) for sink, one in owed],
            )

    def scan(
        self, parents: Sequence[str], bounds: Bounds, *, descending: bool, after: Position | None
    ) -> Iterator[tuple[Position, dict[str, object]]]:
        """Entries within the bounds in order of time, from just after a position on.

        Reads in chunks, so that entries written meanwhile do not disturb it and nobody is locked out for long.
        """
        while chunk := self._chunk(parents, bounds, descending=descending, after=after):
            for row_id, timestamp, body in chunk:
                after = Position(timestamp_ns=timestamp, id=row_id)
                yield after, json.loads(body)

    def _chunk(
        self,
        parents: Sequence[str],
        bounds: Bounds,
        *,
        descending: bool,
        after: Position | None,
        size: int = 1000,
    ) -> list[tuple[int, int, str]]:
        # One parent by equality lets an index give the order; several need a sort.
        marks = ",".join("?" * len(parents))
        where: list[str] = ["parent = ?" if len(parents) == 1 else f"parent IN ({marks})"]
        values: list[str | int] = [*parents]
        for condition, value in bounds.conditions():
            where.append(condition)
            values.append(value)
        if after is not None:
            where.append(f"(timestamp, id) {'<' if descending else '>'} (?, ?)")
            values += [after.timestamp_ns, after.id]
        direction = "DESC" if descending else "ASC"
        sql = (
            f"SELECT id, timestamp, body FROM entries WHERE {' AND '.join(where)}"  # noqa: S608  # values are bound
            f" ORDER BY timestamp {direction}, id {direction} LIMIT {size}"
        )
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def log_names(self, parent: str) -> list[str]:
        """As they were first written."""
        with self._lock:
            rows = self._db.execute(
                "SELECT min(json_extract(body, '$.logName')) FROM entries WHERE parent = ? GROUP BY log_name",
                (parent,),
            )
            return sorted(name for (name,) in rows)

    def delete_log(self, log_name: str) -> int:
        """How many entries it had."""
        parent = log_name.rpartition("/logs/")[0]
        with self._lock:
            cursor = self._db.execute(
                "DELETE FROM entries WHERE parent = ? AND log_name = ?", (parent, fold(log_name))
            )
            return cursor.rowcount

    def drop_before(self, timestamp_ns: int) -> None:
        with self._lock:
            self._db.execute("DELETE FROM entries WHERE timestamp < ?", (timestamp_ns,))

    def count(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM entries").fetchone()[0])

    # -- sinks

    def sinks(self) -> dict[str, dict[str, object]]:
        """By full name."""
        with self._lock:
            return {name: json.loads(body) for name, body in self._db.execute("SELECT name, body FROM sinks")}

    def put_sink(self, name: str, sink: Mapping[str, object]) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO sinks VALUES (?, ?)", (name, json.dumps(sink)))

    def delete_sink(self, name: str) -> None:
        """With what it still owed."""
        with self.transaction():
            self._db.execute("DELETE FROM sinks WHERE name = ?", (name,))
            self._db.execute("DELETE FROM outbox WHERE sink = ?", (name,))

    # -- outbox

    def owed(self, sink: str, *, limit: int) -> list[Owed]:
        """The oldest that the sink owes."""
        with self._lock:
            rows = self._db.execute(
                "SELECT id, timestamp, body FROM outbox WHERE sink = ? ORDER BY id LIMIT ?", (sink, limit)
            ).fetchall()
        return [Owed(id=row_id, timestamp_ns=timestamp, body=body) for row_id, timestamp, body in rows]

    def settle(self, owed: Sequence[Owed]) -> None:
        """These are published."""
        with self.transaction():
            self._db.executemany("DELETE FROM outbox WHERE id = ?", [(one.id,) for one in owed])

    def owing(self) -> dict[str, int]:
        """How much each sink owes."""
        with self._lock:
            return dict(self._db.execute("SELECT sink, count(*) FROM outbox GROUP BY sink"))
