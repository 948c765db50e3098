"""SQLite files as the emulators keep their state: one connection, every write durable when its call returns."""

import sqlite3
from pathlib import Path


def opened(path: Path, schema: str, *, exclusive: bool = False) -> sqlite3.Connection:
    """The database at `path`, made from `schema` (statements that may run again), for any thread, one at a time.

    A killed process loses nothing that was written; a power failure may take the last moments.

    Raises:
        sqlite3.OperationalError: `exclusive`, and another process has it open.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None, timeout=1.0, check_same_thread=False)
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
