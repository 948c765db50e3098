"""SQLite files for the emulators' state: one connection, every write durable when its call returns."""

import contextlib
import errno
import shlex
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Values: TypeAlias = Sequence[object] | Mapping[str, object]


class StateInUseError(RuntimeError):
    """Another process uses the state folder."""


class StateDamagedError(RuntimeError):
    """A file of the state is damaged; the message names it, and the repair."""


class DiskFullError(OSError):
    """A write found no room, and changed nothing. It succeeds once there is room, without a restart."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ENOSPC, f"no space is left to write {path}")


_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IO_WRITE = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN)


class Database:
    """One SQLite file, locked against other processes. Thread-safe: calls and transactions are serialized."""

    def __init__(self, path: Path, schema: str) -> None:
        """Open or create. `schema` has idempotent statements.

        A kill loses no committed write; a power failure may lose the last ones.

        Raises:
            StateInUseError: another emulator uses this file.
            StateDamagedError: the file is damaged.
            DiskFullError: no room is left.
        """
        self.lock = threading.RLock()
        self._path = path
        try:
            with _named_faults(path):
                self._connection = _connect(path, schema)
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
        with self.lock, _named_faults(self._path):
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                # After a failure, unless SQLite has rolled back by itself, as it does for lack of room. A transaction that
                # stayed open would take every later change with it.
                if self._is_open_transaction():
                    self._connection.execute("ROLLBACK")

    def _is_open_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        """Run a statement that changes data."""
        with self.lock, _named_faults(self._path):
            return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Values]) -> None:
        with self.lock, _named_faults(self._path):
            self._connection.executemany(sql, rows)

    # A row's types depend on the statement's columns.
    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Every row of a query, as a tuple."""
        with self.lock, _named_faults(self._path):
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> Any:
        """The first row of a query, or None."""
        with self.lock, _named_faults(self._path):
            return self._connection.execute(sql, values).fetchone()


@contextlib.contextmanager
def _named_faults(path: Path) -> Iterator[None]:
    """Raises `StateDamagedError` or `DiskFullError`, with the file's name, for SQLite's errors that mean this."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _DAMAGED:
            quoted = shlex.quote(str(path))
            raise StateDamagedError(
                f"{path} is damaged ({error}). Stop the stack, then restore a copy of the file, or move it away to start "
                f"without what it holds: mv {quoted} {quoted}.damaged"
            ) from error
        if code == sqlite3.SQLITE_FULL or code in _IO_WRITE:
            raise DiskFullError(path) from error
        raise


def _connect(path: Path, schema: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(
        path, isolation_level=None, timeout=1.0, check_same_thread=False, cached_statements=256
    )
    try:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.executescript(f"BEGIN EXCLUSIVE;{schema};COMMIT;")
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database
