"""What one subscription still has to deliver, and who holds what until when.

Pure: no clock, no storage. Times are seconds of any one clock; the caller passes `now`.

    waiting ──take──▶ leased ──ack──▶ gone
       ▲                 │
       └── back-off ◀── fail: nack or deadline ──▶ given up (dead letter)
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass, field

from trainmaster.local.pubsub.checks.policy import DeliveryPolicy
from trainmaster.local.pubsub.delivery.lease import Entry, Holder, Lane, Lease


@dataclass(slots=True, kw_only=True)
class Failed:
    """What failing did: entries to be delivered again, and entries given up."""

    again: list[Entry] = field(default_factory=list)
    given_up: list[Entry] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    """Ids of messages whose earlier acknowledgement became final because the one before was given up."""


class Backlog:
    """The queue of one subscription.

    Without ordering every message stands alone. With ordering, messages of one key form a lane: a lane hands out
    one batch at a time, in order, and when one of them fails, it and everything after it in the lane comes again,
    acknowledged or not, as the service promises
    (https://cloud.google.com/pubsub/docs/ordering, "redelivers every subsequent message").
    """

    def __init__(self, policy: DeliveryPolicy, *, first_serial: int = 1) -> None:
        self.policy = policy
        self._serial = first_serial
        self._ready: deque[Entry | Lane] = deque()
        self._delayed: list[tuple[float, int, Entry | Lane]] = []
        self._lanes: dict[str, Lane] = {}
        self._entries: dict[int, Entry] = {}
        self._leases: dict[int, Lease] = {}
        self._leased: dict[int, Lease] = {}
        self._deadlines: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def ready(self) -> int:
        """How many messages or lanes could be taken now, not counting those whose back-off has just ended."""
        return len(self._ready)

    def add(self, entry: Entry) -> None:
        """Append a message; ids are added in rising order."""
        self._entries[entry.message_id] = entry
        if not (self.policy.ordered and entry.ordering_key):
            self._ready.append(entry)
            return
        lane = self._lanes.get(entry.ordering_key)
        if lane is None:
            lane = self._lanes[entry.ordering_key] = Lane(key=entry.ordering_key)
        idle = not lane.waiting and not lane.out
        lane.waiting.append(entry)
        if idle:
            self._ready.append(lane)

    def take(self, now: float, holder: Holder, *, count: int) -> list[Lease]:
        """Lease up to `count` messages to the holder, as far as its room and `batch_bytes` go.

        The message that crosses the byte limit is still handed out, so that a large one is never stuck.
        """
        self._end_backoffs(now)
        leases: list[Lease] = []
        size = 0
        while self._ready and len(leases) < count and size < holder.batch_bytes and holder.room > 0:
            head = self._ready.popleft()
            if isinstance(head, Entry):
                if not head.settled:
                    leases.append(self._lease(head, None, now, holder))
                    size += head.size
                continue
            while head.waiting and len(leases) < count and size < holder.batch_bytes and holder.room > 0:
                if len(head.out) >= holder.per_key:
                    break
                leases.append(self._lease(head.waiting.popleft(), head, now, holder))
                size += leases[-1].entry.size
        return leases

    def _lease(self, entry: Entry, lane: Lane | None, now: float, holder: Holder) -> Lease:
        deadline = now + holder.deadline_s
        lease = Lease(entry=entry, serial=self._serial, deadline=deadline, holder=holder, lane=lane)
        self._serial += 1
        self._leases[lease.serial] = self._leased[entry.message_id] = lease
        if lane is not None:
            lane.out.append(lease)
        holder.messages += 1
        holder.bytes += entry.size
        heapq.heappush(self._deadlines, (deadline, lease.serial))
        return lease

    def held(self, serial: int) -> bool:
        """Whether that delivery is still out and unacknowledged."""
        lease = self._leases.get(serial)
        return lease is not None and not lease.acked

    def ack(self, now: float, *, message_id: int, serial: int) -> list[int]:
        """The ids of the messages that are now done with.

        An acknowledgement that comes after its deadline still counts, as the service allows, unless ordering or
        exactly-once delivery forbid it; one for a message not in memory is passed through for the store to judge.
        """
        lease = self._leases.get(serial)
        if lease is not None and lease.entry.message_id == message_id:
            return self._ack_lease(now, lease)
        if self.policy.exactly_once:
            return []
        entry = self._entries.get(message_id)
        if entry is None:
            return [message_id]
        if self.policy.ordered and entry.ordering_key:
            return []
        if (current := self._leased.get(message_id)) is not None:
            self._drop_lease(current)
        self._forget(entry)
        return [message_id]

    def _ack_lease(self, now: float, lease: Lease) -> list[int]:
        lane = lease.lane
        if lane is None:
            self._drop_lease(lease)
            self._forget(lease.entry)
            return [lease.entry.message_id]
        lease.acked = True
        return self._advance(now, lane)

    def _advance(self, now: float, lane: Lane) -> list[int]:
        """Finish the acknowledged head of the lane; when nothing of it is out any more, its next batch may go."""
        done: list[int] = []
        while lane.out and lane.out[0].acked:
            lease = lane.out.popleft()
            self._drop_lease(lease)
            self._forget(lease.entry)
            done.append(lease.entry.message_id)
        if not lane.out:
            self._requeue_lane(now, lane)
        return done

    def _requeue_lane(self, now: float, lane: Lane) -> None:
        if not lane.waiting:
            self._lanes.pop(lane.key, None)
        elif lane.not_before > now:
            self._delay(lane.not_before, lane)
        else:
            self._ready.append(lane)

    def extend(self, now: float, *, serial: int, deadline_s: float) -> bool:
        """Move a lease's end to `deadline_s` seconds from now; False when there is no such lease."""
        lease = self._leases.get(serial)
        if lease is None or lease.acked:
            return False
        lease.deadline = now + deadline_s
        heapq.heappush(self._deadlines, (lease.deadline, serial))
        return True

    def fail(self, now: float, serial: int) -> Failed:
        """Take a lease back before its end: a negative acknowledgement. Unknown leases change nothing."""
        failed = Failed()
        lease = self._leases.get(serial)
        if lease is not None and not lease.acked:
            self._fail(now, lease, failed)
        return failed

    def expire(self, now: float) -> Failed:
        """Take back every lease whose deadline has come."""
        failed = Failed()
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, serial = heapq.heappop(self._deadlines)
            lease = self._leases.get(serial)
            if lease is not None and not lease.acked and lease.deadline == deadline:
                self._fail(now, lease, failed)
        return failed

    def _fail(self, now: float, lease: Lease, failed: Failed) -> None:
        entry, lane = lease.entry, lease.lane
        entry.failures += 1
        if self.policy.gives_up(entry.failures):
            entry.settled = True
            failed.given_up.append(entry)
            failed.done.extend(done for done in self._ack_lease(now, lease) if done != entry.message_id)
            return
        failed.again.append(entry)
        due = now + self.policy.delay_s(entry.failures)
        if lane is not None:
            self._rewind(now, lane, lease, due)
            return
        self._drop_lease(lease)
        if due > now:
            self._delay(due, entry)
        else:
            self._ready.append(entry)

    def _rewind(self, now: float, lane: Lane, failed: Lease, due: float) -> None:
        """Put the failed message and everything of its lane after it back at the front."""
        lane.not_before = due
        while True:
            lease = lane.out.pop()
            self._drop_lease(lease)
            if not lease.entry.settled:  # given up while an earlier message was still out
                lane.waiting.appendleft(lease.entry)
            if lease is failed:
                break
        if not lane.out:
            self._requeue_lane(now, lane)

    def wake_at(self) -> float:
        """When something happens by itself next: a deadline or the end of a back-off; infinity when nothing will."""
        while self._deadlines:
            deadline, serial = self._deadlines[0]
            lease = self._leases.get(serial)
            if lease is not None and not lease.acked and lease.deadline == deadline:
                break
            heapq.heappop(self._deadlines)
        return min(
            self._deadlines[0][0] if self._deadlines else math.inf,
            self._delayed[0][0] if self._delayed else math.inf,
        )

    def _delay(self, due: float, token: Entry | Lane) -> None:
        self._serial += 1
        heapq.heappush(self._delayed, (due, self._serial, token))

    def _end_backoffs(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[2])

    def _drop_lease(self, lease: Lease) -> None:
        del self._leases[lease.serial]
        del self._leased[lease.entry.message_id]
        lease.holder.messages -= 1
        lease.holder.bytes -= lease.entry.size

    def _forget(self, entry: Entry) -> None:
        entry.settled = True
        self._entries.pop(entry.message_id, None)

    def clear(self) -> None:
        """Forget everything, leases too: what the store still owes is added again afterwards."""
        for lease in list(self._leases.values()):
            self._drop_lease(lease)
        self._ready.clear()
        self._delayed.clear()
        self._lanes.clear()
        self._entries.clear()
        self._deadlines.clear()
