"""Topics, subscriptions and messages on disk: one SQLite file that survives a kill at any moment."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from trainmaster.local.pubsub.delivery.lease import Entry
from trainmaster.local.sqlite import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscriptions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS policies (resource TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, published_us INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    subscription INTEGER NOT NULL, message INTEGER NOT NULL, ordering_key TEXT NOT NULL, size INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0, acked INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription, message)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS deliveries_message ON deliveries (message);
"""

# A message that nobody is owed any more is dropped with the delivery that was its last.
_DROP_UNOWED = (
    "DELETE FROM messages WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message = id)"
)


class Store(Database):
    """The file `pubsub.sqlite3` in a folder."""

    def __init__(self, folder: Path) -> None:
        """Open or create.

        Raises:
            StateInUseError: another emulator runs on this folder.
        """
        super().__init__(folder / "pubsub.sqlite3", _SCHEMA)
        self._start_ids_at_the_clock()

    def _start_ids_at_the_clock(self) -> None:
        """Begin a new file's message ids at the time in microseconds.

        So no id comes twice on one machine, even after the state folder was deleted; as long as the service's own.
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
        """The new subscription's id, which no other ever had."""
        cursor = self.execute("INSERT INTO subscriptions (name, body) VALUES (?, ?)", (name, body))
        return int(cursor.lastrowid or 0)

    def put_subscription(self, subscription_id: int, body: bytes) -> None:
        self.execute("UPDATE subscriptions SET body = ? WHERE id = ?", (body, subscription_id))

    def delete_subscription(self, subscription_id: int) -> None:
        """With everything it was owed."""
        with self.transaction():
            self.drop_deliveries(subscription_id)
            self.execute("DELETE FROM subscriptions WHERE id = ?", (subscription_id,))

    def policy(self, resource: str) -> bytes:
        """The resource's IAM policy; empty when none was set."""
        row = self.row("SELECT body FROM policies WHERE resource = ?", (resource,))
        return bytes(row[0]) if row else b""

    def put_policy(self, resource: str, body: bytes) -> None:
        self.execute("INSERT OR REPLACE INTO policies VALUES (?, ?)", (resource, body))

    def next_message_id(self) -> int:
        """The id that the next message gets."""
        row = self.row("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
        return int(row[0]) + 1

    def add_message(
        self, entry: Entry, published_us: int, body: bytes, subscription_ids: Sequence[int]
    ) -> None:
        """Keep a message for its subscriptions. One without any only uses up its id."""
        if not subscription_ids:
            self.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'messages'", (entry.message_id,))
            return
        self.execute("INSERT INTO messages VALUES (?, ?, ?)", (entry.message_id, published_us, body))
        self.executemany(
            "INSERT INTO deliveries (subscription, message, ordering_key, size) VALUES (?, ?, ?, ?)",
            [(each, entry.message_id, entry.ordering_key, entry.size) for each in subscription_ids],
        )

    def bodies(self, message_ids: Sequence[int]) -> dict[int, bytes]:
        """The messages as published; an id that is gone is left out."""
        found: dict[int, bytes] = {}
        for start in range(0, len(message_ids), 500):
            part = message_ids[start : start + 500]
            marks = ",".join("?" * len(part))
            found.update(self.rows(f"SELECT id, body FROM messages WHERE id IN ({marks})", part))  # noqa: S608  # only question marks
        return found

    def owed(self, subscription_id: int, *, after: int, limit: int) -> list[Entry]:
        """The next unacknowledged messages with an id above `after`, in the order of their ids."""
        rows = self.rows(
            "SELECT message, ordering_key, size, failures FROM deliveries"
            " WHERE subscription = ? AND message > ? AND acked = 0 ORDER BY message LIMIT ?",
            (subscription_id, after, limit),
        )
        return [Entry(message_id=m, ordering_key=k, size=s, failures=f) for m, k, s, f in rows]

    def set_failures(self, subscription_id: int, entries: Iterable[Entry]) -> None:
        self.executemany(
            "UPDATE deliveries SET failures = ? WHERE subscription = ? AND message = ?",
            [(entry.failures, subscription_id, entry.message_id) for entry in entries],
        )

    def acknowledge(self, subscription_id: int, message_ids: Sequence[int], *, retain: bool) -> None:
        """Owe these no longer; `retain` keeps them for a later seek."""
        pairs = [(subscription_id, message_id) for message_id in message_ids]
        with self.transaction():
            if retain:
                self.executemany(
                    "UPDATE deliveries SET acked = 1 WHERE subscription = ? AND message = ?", pairs
                )
                return
            self.executemany("DELETE FROM deliveries WHERE subscription = ? AND message = ?", pairs)
            self.executemany(_DROP_UNOWED, [(message_id,) for message_id in message_ids])

    def drop_deliveries(self, subscription_id: int, *, before_us: int | None = None) -> int:
        """Forget what a subscription is owed, all of it or what was published before a time; how many."""
        where, values = "subscription = ?", [subscription_id]
        if before_us is not None:
            where += " AND message IN (SELECT id FROM messages WHERE published_us < ?)"
            values.append(before_us)
        with self.transaction():
            gone = self.rows(f"SELECT message FROM deliveries WHERE {where}", values)  # noqa: S608  # constants above
            self.execute(f"DELETE FROM deliveries WHERE {where}", values)  # noqa: S608  # constants above
            self.executemany(_DROP_UNOWED, gone)
        return len(gone)

    def seek(self, subscription_id: int, time_us: int, *, retain: bool) -> None:
        """Acknowledge what was published before the time, and owe again what came later and is still kept."""
        with self.transaction():
            self.execute(
                "UPDATE deliveries SET acked = 0, failures = 0 WHERE subscription = ? AND acked = 1"
                " AND message IN (SELECT id FROM messages WHERE published_us >= ?)",
                (subscription_id, time_us),
            )
            if not retain:
                self.drop_deliveries(subscription_id, before_us=time_us)
                return
            self.execute(
                "UPDATE deliveries SET acked = 1 WHERE subscription = ?"
                " AND message IN (SELECT id FROM messages WHERE published_us < ?)",
                (subscription_id, time_us),
            )
