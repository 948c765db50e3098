"""The values a backlog is made of: a message waiting, a lane of one ordering key, a lease, a holder."""

import math
from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Entry:
    """One message that a subscription owes somebody; `size` is its bytes on the wire."""

    message_id: int
    ordering_key: str
    size: int
    failures: int = 0
    settled: bool = False
    """Acknowledged while it waited to be delivered again: whoever meets it drops it."""


@dataclass(slots=True, kw_only=True)
class Holder:
    """Whoever takes messages: a stream, a pull call, a pusher; with the room it says it has."""

    max_messages: float = math.inf
    max_bytes: float = math.inf
    messages: int = 0
    bytes: int = 0

    @property
    def room(self) -> float:
        """How many more messages it takes; 0 also when its bytes are full."""
        return self.max_messages - self.messages if self.bytes < self.max_bytes else 0


@dataclass(slots=True, kw_only=True)
class Lane:
    """The messages of one ordering key: at most one batch of them is out at any time."""

    key: str
    waiting: deque[Entry] = field(default_factory=deque)
    out: "deque[Lease]" = field(default_factory=deque)
    not_before: float = 0.0


@dataclass(slots=True, kw_only=True)
class Lease:
    """One delivery of one message: `serial` tells it from every other, `deadline` ends it."""

    entry: Entry
    serial: int
    deadline: float
    holder: Holder
    lane: Lane | None = None
    acked: bool = False
    """Acknowledged, but an earlier message of its key is not yet: it counts when that one does."""
