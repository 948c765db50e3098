"""SQLite files as the emulators keep their state: one connection, every write durable when its call returns."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Values: TypeAlias = Sequence[object] | Mapping[str, object]


class StateInUseError(RuntimeError):
    """Another process holds the state folder."""


class Database:
    """One SQLite file that no other process may open. Any thread may call; calls and transactions take turns."""

    def __init__(self, path: Path, schema: str) -> None:
        """Open or create. `schema` is statements that may run again.

        Raises:
            StateInUseError: another emulator runs on this file.
        """
        self.lock = threading.RLock()
        try:
            self._connection = opened(path, schema, exclusive=True)
        except sqlite3.OperationalError as error:
            raise StateInUseError(
                f"{path} is in use by another process ({error}); stop that one, or take another folder"
            ) from error

    def close(self) -> None:
        """Safe to call twice."""
        with self.lock:
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing of the block's changes; an inner block joins the outer one."""
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
        """For a statement that changes something."""
        with self.lock:
            return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Values]) -> None:
        with self.lock:
            self._connection.executemany(sql, rows)

    # A row's types are those of its columns, which only the statement knows.
    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Every row of a query, as a tuple."""
        with self.lock:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> Any:
        """The first row of a query; None when there is none."""
        with self.lock:
            return self._connection.execute(sql, values).fetchone()


def opened(path: Path, schema: str, *, exclusive: bool = False) -> sqlite3.Connection:
    """The database at `path`, made from `schema` (statements that may run again), for any thread, one at a time.

    A killed process loses nothing that was written; a power failure may take the last moments.

    Raises:
        sqlite3.OperationalError: `exclusive`, and another process has it open.
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
