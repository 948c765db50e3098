"""The undelivered messages of one subscription, and their leases.

Pure: no clock, no storage. Times are seconds of any one clock; the caller passes `now`.

    waiting ──take──▶ leased ──ack──▶ gone
       ▲                 │
       └── back-off ◀── fail: nack or deadline ──▶ given up (dead letter)
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from trainstack.pubsub.checks.settings import DEFAULT_ACK_DEADLINE_S


@dataclass(slots=True, kw_only=True)
class BacklogEntry:
    """One unacknowledged message of a subscription; `size` is its bytes on the wire."""

    message_id: int
    size: int
    failures: int = 0
    key: str = ""
    """Of an ordered subscription's message: it is not taken before those with its key that were added before are settled."""
    settled: bool = False
    """Acknowledged or dead-lettered: an entry still in a queue is skipped."""
    lease: "MessageLease | None" = None


@dataclass(slots=True, kw_only=True)
class Holder:
    """A stream or pull call that takes messages, with its flow-control limits and lease time.

    It receives at most `batch_bytes` at once, plus the message that crosses that limit, and leases each
    message for `deadline_s`.
    """

    max_messages: float = math.inf
    max_bytes: float = math.inf
    batch_bytes: float = math.inf
    deadline_s: float = DEFAULT_ACK_DEADLINE_S
    messages: int = 0
    bytes: int = 0

    @property
    def room(self) -> float:
        """How many more messages it takes; 0 also if its byte limit is reached."""
        return self.max_messages - self.messages if self.bytes < self.max_bytes else 0


@dataclass(slots=True, kw_only=True)
class MessageLease:
    """One delivery of one message, with a unique `serial`; it ends at `deadline`."""

    entry: BacklogEntry
    serial: int
    deadline: float
    holder: Holder


@dataclass(frozen=True, kw_only=True)
class DeliveryPolicy:
    """The part of a subscription's configuration that the backlog needs.

    With a back-off of 0 s, a failed message is ready again at once. With `max_attempts` None, no message is
    dead-lettered.
    """

    min_backoff_s: float = 0.0
    max_backoff_s: float = 0.0
    max_attempts: int | None = None

    def delay_s(self, failures: int) -> float:
        """Seconds until a message that has failed this often, counted from 1, is ready again.

        Doubles from the minimum to the maximum. The service calls its own curve approximate and gives no
        formula: https://cloud.google.com/pubsub/docs/handling-failures#exponential_backoff
        """
        return min(self.max_backoff_s, self.min_backoff_s * 2.0 ** min(failures - 1, 60))

    def gives_up(self, failures: int) -> bool:
        """Whether a message that has failed this often goes to the dead-letter topic."""
        return self.max_attempts is not None and failures >= self.max_attempts


class Backlog:
    """The queue of one subscription; messages without a key are independent of each other."""

    def __init__(self, owed: Iterable[BacklogEntry] = (), *, first_serial: int = 1) -> None:
        """Start with these messages, and without back-off until `policy` is set."""
        self.policy = DeliveryPolicy()
        self._serial = first_serial
        self._ready: deque[BacklogEntry] = deque()
        self._delayed: list[tuple[float, int, BacklogEntry]] = []
        self._entries: dict[int, BacklogEntry] = {}
        self._lines: dict[str, deque[BacklogEntry]] = {}
        self._leases: dict[int, MessageLease] = {}
        self._deadlines: list[tuple[float, int]] = []
        for entry in owed:
            self.add(entry)

    def __len__(self) -> int:
        """The number of messages neither acknowledged nor dead-lettered."""
        return len(self._entries)

    def add(self, entry: BacklogEntry) -> None:
        """Append a message; ids are added in rising order."""
        self._entries[entry.message_id] = entry
        if entry.key:
            line = self._lines.setdefault(entry.key, deque())
            line.append(entry)
            if len(line) > 1:
                return
        self._ready.append(entry)

    def replace(self, entries: Iterable[BacklogEntry]) -> None:
        """End every lease, and start again with these messages, in rising order."""
        for lease in list(self._leases.values()):
            self._drop_lease(lease)
        for kept in (self._delayed, self._ready, self._entries, self._lines):
            kept.clear()
        for entry in entries:
            self.add(entry)

    def take(self, now: float, holder: Holder, *, count: int) -> list[MessageLease]:
        """Lease up to `count` messages to the holder, within its room and `batch_bytes`.

        The message that crosses the byte limit is still delivered, so that a large one is never stuck.
        """
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[2])
        leases: list[MessageLease] = []
        size = 0
        while self._ready and len(leases) < count and size < holder.batch_bytes and holder.room > 0:
            entry = self._ready.popleft()
            if not entry.settled:
                leases.append(self._lease(entry, now, holder))
                size += entry.size
        return leases

    def _lease(self, entry: BacklogEntry, now: float, holder: Holder) -> MessageLease:
        lease = MessageLease(
            entry=entry, serial=self._serial, deadline=now + holder.deadline_s, holder=holder
        )
        self._serial += 1
        self._leases[lease.serial] = entry.lease = lease
        holder.messages += 1
        holder.bytes += entry.size
        heapq.heappush(self._deadlines, (lease.deadline, lease.serial))
        return lease

    def ack(self, message_id: int) -> None:
        """Remove a message, whichever delivery of it is acknowledged, even a late one."""
        if (entry := self._entries.pop(message_id, None)) is not None:
            if entry.lease is not None:
                self._drop_lease(entry.lease)
            entry.settled = True
            if entry.key and self._lines[entry.key][0] is entry:
                self._let_next(entry.key)

    def _let_next(self, key: str) -> None:
        line = self._lines[key]
        while line and line[0].settled:
            line.popleft()
        if line:
            self._ready.append(line[0])
        else:
            del self._lines[key]

    def extend(self, now: float, *, serial: int, deadline_s: float) -> bool:
        """Move a lease's end to `deadline_s` seconds from now; False if there is no such lease."""
        lease = self._leases.get(serial)
        if lease is None:
            return False
        lease.deadline = now + deadline_s
        heapq.heappush(self._deadlines, (lease.deadline, serial))
        return True

    def fail(self, now: float, serial: int) -> list[BacklogEntry]:
        """End a lease early: a negative acknowledgement.

        Unknown leases are ignored. Returns the messages that failed; those now settled must be dead-lettered.
        """
        lease = self._leases.get(serial)
        return [self._fail(now, lease)] if lease is not None else []

    def expire(self, now: float) -> list[BacklogEntry]:
        """End every lease whose deadline has passed; returns what `fail` returns."""
        failed: list[BacklogEntry] = []
        while self._next_deadline() <= now:
            _, serial = heapq.heappop(self._deadlines)
            failed.append(self._fail(now, self._leases[serial]))
        return failed

    def _fail(self, now: float, lease: MessageLease) -> BacklogEntry:
        entry = lease.entry
        entry.failures += 1
        self._drop_lease(lease)
        due = now + self.policy.delay_s(entry.failures)
        if self.policy.gives_up(entry.failures):
            self.ack(entry.message_id)
        elif due > now:
            self._serial += 1
            heapq.heappush(self._delayed, (due, self._serial, entry))
        else:
            self._ready.append(entry)
        return entry

    def wake_at(self) -> float:
        """When the next deadline or back-off ends; infinity without any."""
        return min(self._next_deadline(), self._delayed[0][0] if self._delayed else math.inf)

    def _next_deadline(self) -> float:
        """When the next lease ends; infinity without any. Drops deadlines that were moved or settled."""
        while self._deadlines:
            deadline, serial = self._deadlines[0]
            lease = self._leases.get(serial)
            if lease is not None and lease.deadline == deadline:
                return deadline
            heapq.heappop(self._deadlines)
        return math.inf

    def _drop_lease(self, lease: MessageLease) -> None:
        del self._leases[lease.serial]
        lease.entry.lease = None
        lease.holder.messages -= 1
        lease.holder.bytes -= lease.entry.size
