"""What one subscription still has to deliver, and who holds what until when.

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

from trainmaster.local.pubsub.checks.settings import DEFAULT_ACK_DEADLINE_S


@dataclass(slots=True, kw_only=True)
class Entry:
    """One message that a subscription owes somebody; `size` is its bytes on the wire."""

    message_id: int
    size: int
    failures: int = 0
    settled: bool = False
    """Acknowledged or given up: whoever still meets it in a queue drops it."""


@dataclass(slots=True, kw_only=True)
class Holder:
    """A stream or a pull call that takes messages; with the room and the patience it has.

    It gets at most `batch_bytes` at once and the message that crosses them, and each is its own for `deadline_s`.
    """

    max_messages: float = math.inf
    max_bytes: float = math.inf
    batch_bytes: float = math.inf
    deadline_s: float = DEFAULT_ACK_DEADLINE_S
    messages: int = 0
    bytes: int = 0

    @property
    def room(self) -> float:
        """How many more messages it takes; 0 also when its bytes are full."""
        return self.max_messages - self.messages if self.bytes < self.max_bytes else 0


@dataclass(slots=True, kw_only=True)
class Lease:
    """One delivery of one message: `serial` tells it from every other, `deadline` ends it."""

    entry: Entry
    serial: int
    deadline: float
    holder: Holder


@dataclass(frozen=True, kw_only=True)
class DeliveryPolicy:
    """What the backlog must know of a subscription's configuration.

    A back-off of 0 s means that a failed message is ready again at once;
    `max_attempts` None means that no message is ever given up.
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
    """The queue of one subscription; every message stands alone."""

    def __init__(self, owed: Iterable[Entry] = (), *, first_serial: int = 1) -> None:
        """Begin with these messages, and without patience until `policy` is set."""
        self.policy = DeliveryPolicy()
        self._serial = first_serial
        self._ready = deque(owed)
        self._delayed: list[tuple[float, int, Entry]] = []
        self._entries = {entry.message_id: entry for entry in self._ready}
        self._leases: dict[int, Lease] = {}
        self._leased: dict[int, Lease] = {}
        self._deadlines: list[tuple[float, int]] = []

    def __len__(self) -> int:
        """How many messages are neither acknowledged nor given up."""
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Append a message; ids are added in rising order."""
        self._entries[entry.message_id] = entry
        self._ready.append(entry)

    def take(self, now: float, holder: Holder, *, count: int) -> list[Lease]:
        """Lease up to `count` messages to the holder, as far as its room and `batch_bytes` go.

        The message that crosses the byte limit is still handed out, so that a large one is never stuck.
        """
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[2])
        leases: list[Lease] = []
        size = 0
        while self._ready and len(leases) < count and size < holder.batch_bytes and holder.room > 0:
            entry = self._ready.popleft()
            if not entry.settled:
                leases.append(self._lease(entry, now, holder))
                size += entry.size
        return leases

    def _lease(self, entry: Entry, now: float, holder: Holder) -> Lease:
        lease = Lease(entry=entry, serial=self._serial, deadline=now + holder.deadline_s, holder=holder)
        self._serial += 1
        self._leases[lease.serial] = self._leased[entry.message_id] = lease
        holder.messages += 1
        holder.bytes += entry.size
        heapq.heappush(self._deadlines, (lease.deadline, lease.serial))
        return lease

    def ack(self, message_id: int) -> None:
        """Be done with a message, whichever delivery of it is acknowledged: one that is late counts too."""
        if (lease := self._leased.get(message_id)) is not None:
            self._drop_lease(lease)
        if (entry := self._entries.pop(message_id, None)) is not None:
            entry.settled = True

    def extend(self, now: float, *, serial: int, deadline_s: float) -> bool:
        """Move a lease's end to `deadline_s` seconds from now; False when there is no such lease."""
        lease = self._leases.get(serial)
        if lease is None:
            return False
        lease.deadline = now + deadline_s
        heapq.heappush(self._deadlines, (lease.deadline, serial))
        return True

    def fail(self, now: float, serial: int) -> list[Entry]:
        """Take a lease back before its end: a negative acknowledgement. Unknown leases change nothing.

        Gives the messages that failed; those that are settled now are given up.
        """
        lease = self._leases.get(serial)
        return [self._fail(now, lease)] if lease is not None else []

    def expire(self, now: float) -> list[Entry]:
        """Take back every lease whose deadline has come; gives what `fail` gives."""
        failed: list[Entry] = []
        while self._next_deadline() <= now:
            _, serial = heapq.heappop(self._deadlines)
            failed.append(self._fail(now, self._leases[serial]))
        return failed

    def _fail(self, now: float, lease: Lease) -> Entry:
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
        """When something happens by itself next: a deadline or the end of a back-off; infinity when nothing will."""
        return min(self._next_deadline(), self._delayed[0][0] if self._delayed else math.inf)

    def _next_deadline(self) -> float:
        """When the next lease ends; infinity when there is none. Drops deadlines that were moved or settled."""
        while self._deadlines:
            deadline, serial = self._deadlines[0]
            lease = self._leases.get(serial)
            if lease is not None and lease.deadline == deadline:
                return deadline
            heapq.heappop(self._deadlines)
        return math.inf

    def _drop_lease(self, lease: Lease) -> None:
        del self._leases[lease.serial]
        del self._leased[lease.entry.message_id]
        lease.holder.messages -= 1
        lease.holder.bytes -= lease.entry.size
