"""Topics, subscriptions, snapshots and messages on disk: one SQLite file that survives a kill at any time.

Leases are not stored. After a kill, a message that was leased is ready again, which at-least-once delivery
allows.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from trainstack.pubsub.delivery.backlog import BacklogEntry
from trainstack.sqlite import Database

Kind: TypeAlias = Literal["topics", "snapshots", "schemas", "policies"]
"""Tables of resources by name."""
StoredMessage: TypeAlias = tuple[int, bytes, Sequence[int]]
"""A message's id, its bytes on the wire, and the ids of its subscriptions."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshots (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS schemas (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS policies (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscriptions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, published_us INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    subscription INTEGER NOT NULL, message INTEGER NOT NULL, size INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (subscription, message)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS deliveries_message ON deliveries (message);
CREATE TABLE IF NOT EXISTS kept (holder TEXT NOT NULL, message INTEGER NOT NULL, PRIMARY KEY (holder, message)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kept_message ON kept (message);
"""

_FOREVER_US = 2**63 - 1
# A message is deleted with its last pending delivery, unless a topic, snapshot or subscription keeps it to be sought.
_DROP_UNOWED = (
    "DELETE FROM messages WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message = id)"
    " AND NOT EXISTS (SELECT 1 FROM kept WHERE message = id)"
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

    def resources(self, kind: Kind) -> dict[str, bytes]:
        """By name."""
        return dict(self.rows(f"SELECT name, body FROM {kind}"))  # noqa: S608  # a constant

    def put(self, kind: Kind, name: str, body: bytes) -> None:
        self.execute(f"INSERT OR REPLACE INTO {kind} VALUES (?, ?)", (name, body))  # noqa: S608  # as above

    def delete(self, kind: Kind, name: str) -> None:
        """Delete the resource and what it keeps."""
        with self.transaction():
            self.execute(f"DELETE FROM {kind} WHERE name = ?", (name,))  # noqa: S608  # as above
            self.forget(name)

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

    def add_messages(
        self, messages: Sequence[StoredMessage], published_us: int, holders: Sequence[str]
    ) -> None:
        """Store messages for their subscriptions, and for the `holders` that keep them. Without any, only the id is used up."""
        self.executemany(
            "INSERT INTO messages VALUES (?, ?, ?)",
            [(message_id, published_us, body) for message_id, body, to in messages if to or holders],
        )
        self.executemany(
            "INSERT INTO deliveries (subscription, message, size) VALUES (?, ?, ?)",
            [
                (subscription_id, message_id, len(body))
                for message_id, body, to in messages
                for subscription_id in to
            ],
        )
        self.executemany(
            "INSERT INTO kept VALUES (?, ?)",
            [(holder, message_id) for message_id, _, _ in messages for holder in holders],
        )
        self.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'messages'", (messages[-1][0],))

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

    def acknowledge(self, subscription_id: int, message_ids: Sequence[int], *, holder: str = "") -> None:
        """Delete these pending deliveries; a `holder` keeps their messages."""
        with self.transaction():
            if holder:
                self.executemany(
                    "INSERT OR IGNORE INTO kept SELECT ?, message FROM deliveries WHERE subscription = ? AND message = ?",
                    [(holder, subscription_id, message_id) for message_id in message_ids],
                )
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

    def keep_backlog(self, subscription_id: int, holder: str) -> int | None:
        """Let `holder` keep what a subscription has not acknowledged; when the oldest of it was published, in microseconds."""
        self.execute(
            "INSERT INTO kept SELECT ?, message FROM deliveries WHERE subscription = ?",
            (holder, subscription_id),
        )
        oldest: int | None = self.row(
            "SELECT min(published_us) FROM messages JOIN kept ON id = message WHERE holder = ?", (holder,)
        )[0]
        return oldest

    def forget(self, holder: str, *, before_us: int = _FOREVER_US) -> None:
        """Keep nothing more for a holder of what was published before a time."""
        ids = self.rows(
            "SELECT id FROM messages JOIN kept ON id = message WHERE holder = ? AND published_us < ?",
            (holder, before_us),
        )
        with self.transaction():
            self.executemany(
                "DELETE FROM kept WHERE holder = ? AND message = ?", [(holder, message) for (message,) in ids]
            )
            self.executemany(_DROP_UNOWED, ids)

    def kept_messages(
        self, holders: Sequence[str], subscription_id: int, *, since_us: int
    ) -> list[tuple[int, bytes]]:
        """What the holders keep, and the subscription's pending messages, as published since then, in order."""
        marks = ",".join("?" * len(holders))
        kept = f"SELECT message FROM kept WHERE holder IN ({marks})"  # noqa: S608  # only question marks
        pending = "SELECT message FROM deliveries WHERE subscription = ?"
        return self.rows(
            f"SELECT id, body FROM messages WHERE published_us >= ? AND id IN ({pending} UNION {kept}) ORDER BY id",  # noqa: S608  # as above
            (since_us, subscription_id, *holders),
        )

    def replace_deliveries(
        self, subscription_id: int, entries: Sequence[BacklogEntry], *, holder: str
    ) -> None:
        """Make these the pending deliveries; the `holder`, if any, keeps the others."""
        wanted = {entry.message_id for entry in entries}
        pending = self.rows("SELECT message FROM deliveries WHERE subscription = ?", (subscription_id,))
        with self.transaction():
            self.acknowledge(subscription_id, [one for (one,) in pending if one not in wanted], holder=holder)
            self.executemany(
                "INSERT OR IGNORE INTO deliveries (subscription, message, size) VALUES (?, ?, ?)",
                [(subscription_id, entry.message_id, entry.size) for entry in entries],
            )
