"""Replica slots on this machine, granted first come, first served."""

import asyncio
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class SlotTurn:
    """A place in the queue for `count` slots, and the slots themselves once it `came`."""

    count: int
    came: asyncio.Event = field(default_factory=asyncio.Event)


class Capacity:
    """At most `replicas` slots; a job takes all its replicas' slots together, first come, first served.

    Smaller jobs do not overtake a large job at the head of the queue: it might never start.
    """

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self._line: deque[SlotTurn] = deque()
        self._taken: set[SlotTurn] = set()

    def has_room_for(self, count: int) -> bool:
        """Whether `line_up(count)` would get its slots at once."""
        return not self._line and count <= self._free

    def line_up(self, count: int) -> SlotTurn:
        """Queue for `count` slots, at most `replicas`. The turn must be released, whether it came or not."""
        turn = SlotTurn(count)
        self._line.append(turn)
        self._admit()
        return turn

    def release(self, turn: SlotTurn) -> None:
        """Free the slots, or leave the queue. Safe to call twice."""
        if turn in self._line:
            self._line.remove(turn)
        self._taken.discard(turn)
        self._admit()

    @property
    def _free(self) -> int:
        return self.replicas - sum(turn.count for turn in self._taken)

    def _admit(self) -> None:
        while self._line and self._line[0].count <= self._free:
            turn = self._line.popleft()
            self._taken.add(turn)
            turn.came.set()
