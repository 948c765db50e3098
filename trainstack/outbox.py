"""A transactional outbox to Pub/Sub: messages are written with the change they report, and published at least once.

A message leaves the outbox only after Pub/Sub has accepted it; after a kill in between, it is published
again.
"""

import asyncio
import contextlib
import json
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from google.api_core.exceptions import InvalidArgument

from trainstack.instants import format_instant, now_ns
from trainstack.publisher import Message
from trainstack.sqlite import Database
from trainstack.tasks import cancel_all

OUTBOX_SCHEMA = """
CREATE TABLE IF NOT EXISTS owed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, data BLOB NOT NULL, attributes TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS owed_by_key ON owed (key, id);
"""

# One index look-up for each key, however many messages it has.
_KEYS = """
WITH RECURSIVE each(key) AS (
    SELECT min(key) FROM owed
    UNION ALL SELECT (SELECT min(key) FROM owed WHERE key > each.key) FROM each WHERE each.key IS NOT NULL)
SELECT key FROM each WHERE key IS NOT NULL
"""

Send: TypeAlias = Callable[[str, Sequence[Message]], Awaitable[None]]
"""Publishes messages of one key; raises unless all of them were accepted."""

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 15.0
_BATCH = 100
# Well below the 10 MB of a publish request, even if every message is a log entry of 256 KiB.
_BATCH_BYTES = 4_000_000

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class DeliveryAccount:
    """Statistics of one key; `failures` counts consecutive ones."""

    published: int = 0
    dropped: int = 0
    failures: int = 0
    last_error: str = ""
    last_error_time: str = ""


class Outbox:
    """Pending messages by key (a topic or a sink). Each key is published independently, in order.

    Call `owe` and `forget` in the transaction of the change that they report. All methods but `run` are
    thread-safe.
    """

    def __init__(self, database: Database) -> None:
        """The database must have the table of `OUTBOX_SCHEMA`."""
        self._database = database
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owed = asyncio.Event()
        self._again = asyncio.Event()
        self.accounts: defaultdict[str, DeliveryAccount] = defaultdict(DeliveryAccount)

    def owe(self, key: str, data: bytes, attributes: Mapping[str, str]) -> None:
        self._database.execute(
            "INSERT INTO owed (key, data, attributes) VALUES (?, ?, ?)", (key, data, json.dumps(attributes))
        )

    def forget(self, key: str) -> None:
        """Delete this key's pending messages."""
        self._database.execute("DELETE FROM owed WHERE key = ?", (key,))
        self.accounts.pop(key, None)

    def owing(self) -> dict[str, int]:
        """The number of pending messages of each key."""
        return dict(self._database.rows("SELECT key, count(*) FROM owed GROUP BY key"))

    def wake(self) -> None:
        """Publish newly added messages. Call it after the transaction."""
        self._call_in_loop(self._owed)

    def retry(self) -> None:
        """Retry failed messages at once, because a change may let them succeed."""
        self._call_in_loop(self._again)

    def _call_in_loop(self, event: asyncio.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended; the next start publishes them
            if self._loop is not None:
                self._loop.call_soon_threadsafe(event.set)

    async def run(self, send: Send) -> None:
        """Publish until cancelled."""
        self._loop = asyncio.get_running_loop()
        tasks: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                self._owed.clear()
                for (key,) in self._database.rows(_KEYS):
                    if key not in tasks or tasks[key].done():
                        tasks[key] = asyncio.create_task(self._empty(key, send), name=f"outbox {key}")
                await self._owed.wait()
        finally:
            self._loop = None
            await cancel_all(tasks.values())

    async def _empty(self, key: str, send: Send) -> None:
        """Publish all pending messages of one key."""
        while batch := self._batch(key):
            self._again.clear()
            if await self._send(key, batch, send):
                continue
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.accounts[key].failures - 1, 20))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), pause_s)

    def _batch(self, key: str) -> list[tuple[int, Message]]:
        """The oldest messages of a key that fit into one request; at least one."""
        rows = self._database.rows(
            "SELECT id, data, attributes FROM owed WHERE key = ? ORDER BY id LIMIT ?", (key, _BATCH)
        )
        batch: list[tuple[int, Message]] = []
        size = 0
        for row_id, data, attributes in rows:
            size += len(data)
            if batch and size > _BATCH_BYTES:
                break
            batch.append((row_id, (data, json.loads(attributes))))
        return batch

    async def _send(self, key: str, batch: Sequence[tuple[int, Message]], send: Send) -> bool:
        """Whether the batch is done: published, or refused permanently."""
        account = self.accounts[key]
        try:
            await send(key, [message for _, message in batch])
        except InvalidArgument as error:
            # Pub/Sub will never accept one of these; the others must not wait for it.
            if len(batch) > 1:
                return all([await self._send(key, [one], send) for one in batch])
            _note(key, account, f"dropped a message that Pub/Sub refused: {error.message}")
            account.dropped += 1
        except Exception as error:  # whatever it is, the messages stay in the outbox
            account.failures += 1
            _note(key, account, str(error) or type(error).__name__)
            return False
        else:
            account.published += len(batch)
            account.failures = 0
        self._database.executemany("DELETE FROM owed WHERE id = ?", [(row_id,) for row_id, _ in batch])
        return True


def _note(key: str, account: DeliveryAccount, error: str) -> None:
    if error != account.last_error or account.failures == 1:
        _log.error("cannot publish pending messages of %s: %s", key, error)
    account.last_error, account.last_error_time = error, format_instant(now_ns())
