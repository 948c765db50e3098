"""SQLite files for the emulators' state: one connection, every write durable when its call returns."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Values: TypeAlias = Sequence[object] | Mapping[str, object]


class StateInUseError(RuntimeError):
    """Another process uses the state folder."""


class Database:
    """One SQLite file, locked against other processes. Thread-safe: calls and transactions are serialized."""

    def __init__(self, path: Path, schema: str) -> None:
        """Open or create. `schema` has idempotent statements.

        Raises:
            StateInUseError: another emulator uses this file.
        """
        self.lock = threading.RLock()
        try:
            self._connection = opened(path, schema, exclusive=True)
        except sqlite3.OperationalError as error:
            raise StateInUseError(
                f"{path} is in use by another process ({error}); stop that process, or choose another folder"
            ) from error

    def close(self) -> None:
        """Safe to call twice."""
        with self.lock:
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the block's changes together or not at all; an inner block joins the outer one."""
        with self.lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def execute(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        """Run a statement that changes data."""
        with self.lock:
            return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Values]) -> None:
        with self.lock:
            self._connection.executemany(sql, rows)

    # A row's types depend on the statement's columns.
    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Every row of a query, as a tuple."""
        with self.lock:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> Any:
        """The first row of a query; None if there is none."""
        with self.lock:
            return self._connection.execute(sql, values).fetchone()


def opened(path: Path, schema: str, *, exclusive: bool = False) -> sqlite3.Connection:
    """Open or create the database at `path` with `schema` (idempotent statements), for use by one thread at a time.

    A kill loses no committed write; a power failure may lose the last ones.

    Raises:
        sqlite3.OperationalError: `exclusive` is set and another process has it open.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(
        path, isolation_level=None, timeout=1.0, check_same_thread=False, cached_statements=256
    )
    try:
        if exclusive:
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.executescript(f"BEGIN {'EXCLUSIVE' if exclusive else 'IMMEDIATE'};{schema};COMMIT;")
    except sqlite3.OperationalError:
        database.close()
        raise
    return database
