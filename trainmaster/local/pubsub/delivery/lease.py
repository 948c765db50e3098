"""The values a backlog is made of: a message waiting, a lease, and who holds it."""

import math
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
