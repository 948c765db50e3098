"""Topics, subscriptions and messages on disk: one SQLite file that survives a kill at any time.

Leases are not stored. After a kill, a message that was leased is ready again, which at-least-once delivery
allows.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from trainstack.pubsub.delivery.backlog import BacklogEntry
from trainstack.sqlite import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscriptions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, published_us INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    subscription INTEGER NOT NULL, message INTEGER NOT NULL, size INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (subscription, message)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS deliveries_message ON deliveries (message);
"""

_FOREVER_US = 2**63 - 1
# A message is deleted with its last pending delivery.
_DROP_UNOWED = (
    "DELETE FROM messages WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message = id)"
)


class PubsubStore(Database):
    """The file `pubsub.sqlite3` in a folder."""

    def __init__(self, folder: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another emulator uses this folder.
        """
        super().__init__(folder / "pubsub.sqlite3", _SCHEMA)
        self._start_ids_at_the_clock()

    def _start_ids_at_the_clock(self) -> None:
        """Start a new file's message ids at the current time in microseconds.

        So no id is reused on one machine, even after the state folder was deleted. They are as long as the
        service's ids.
        """
        first = time.time_ns() // 1000
        with self.transaction():
            if not self.row("SELECT 1 FROM sqlite_sequence WHERE name = 'messages'"):
                self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', ?)", (first,))

    def topics(self) -> dict[str, bytes]:
        return dict(self.rows("SELECT name, body FROM topics"))

    def put_topic(self, name: str, body: bytes) -> None:
        self.execute("INSERT OR REPLACE INTO topics VALUES (?, ?)", (name, body))

    def delete_topic(self, name: str) -> None:
        self.execute("DELETE FROM topics WHERE name = ?", (name,))

    def subscriptions(self) -> list[tuple[int, bytes]]:
        return self.rows("SELECT id, body FROM subscriptions ORDER BY id")

    def add_subscription(self, name: str, body: bytes) -> int:
        """The new subscription's id, which is never reused."""
        cursor = self.execute("INSERT INTO subscriptions (name, body) VALUES (?, ?)", (name, body))
        return int(cursor.lastrowid or 0)

    def put_subscription(self, subscription_id: int, body: bytes) -> None:
        self.execute("UPDATE subscriptions SET body = ? WHERE id = ?", (body, subscription_id))

    def delete_subscription(self, subscription_id: int) -> None:
        """Delete the subscription with its pending deliveries."""
        with self.transaction():
            self.drop_deliveries(subscription_id, before_us=_FOREVER_US)
            self.execute("DELETE FROM subscriptions WHERE id = ?", (subscription_id,))

    def next_message_id(self) -> int:
        """The id of the next message."""
        row = self.row("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
        return int(row[0]) + 1

    def add_message(
        self, entry: BacklogEntry, published_us: int, body: bytes, subscription_ids: Sequence[int]
    ) -> None:
        """Store a message for its subscriptions. Without any, only its id is used up."""
        if not subscription_ids:
            self.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'messages'", (entry.message_id,))
            return
        self.execute("INSERT INTO messages VALUES (?, ?, ?)", (entry.message_id, published_us, body))
        self.executemany(
            "INSERT INTO deliveries (subscription, message, size) VALUES (?, ?, ?)",
            [(subscription_id, entry.message_id, entry.size) for subscription_id in subscription_ids],
        )

    def bodies(self, message_ids: Sequence[int]) -> dict[int, bytes]:
        """The messages as published; missing ids are left out."""
        bodies_by_id: dict[int, bytes] = {}
        for start in range(0, len(message_ids), 500):
            part = message_ids[start : start + 500]
            marks = ",".join("?" * len(part))
            bodies_by_id.update(self.rows(f"SELECT id, body FROM messages WHERE id IN ({marks})", part))  # noqa: S608  # only question marks
        return bodies_by_id

    def unacknowledged_entries(self, subscription_id: int) -> list[BacklogEntry]:
        """The unacknowledged messages, in order of their ids."""
        rows = self.rows(
            "SELECT message, size, failures FROM deliveries WHERE subscription = ? ORDER BY message",
            (subscription_id,),
        )
        return [
            BacklogEntry(message_id=message, size=size, failures=failures) for message, size, failures in rows
        ]

    def set_failures(self, subscription_id: int, entries: Sequence[BacklogEntry]) -> None:
        self.executemany(
            "UPDATE deliveries SET failures = ? WHERE subscription = ? AND message = ?",
            [(entry.failures, subscription_id, entry.message_id) for entry in entries],
        )

    def acknowledge(self, subscription_id: int, message_ids: Sequence[int]) -> None:
        """Delete these pending deliveries."""
        with self.transaction():
            self.executemany(
                "DELETE FROM deliveries WHERE subscription = ? AND message = ?",
                [(subscription_id, message_id) for message_id in message_ids],
            )
            self.executemany(_DROP_UNOWED, [(message_id,) for message_id in message_ids])

    def drop_deliveries(self, subscription_id: int, *, before_us: int) -> list[int]:
        """Delete a subscription's pending messages published before a time; return their ids."""
        gone = self.rows(
            "SELECT message FROM deliveries JOIN messages ON messages.id = message"
            " WHERE subscription = ? AND published_us < ?",
            (subscription_id, before_us),
        )
        ids = [message_id for (message_id,) in gone]
        self.acknowledge(subscription_id, ids)
        return ids
