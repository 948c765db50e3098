"""Room for replicas on this machine, given out in the order it was asked for."""

import asyncio
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Turn:
    """A stand in the line for `count` places, and the places themselves once it `came`."""

    count: int
    came: asyncio.Event = field(default_factory=asyncio.Event)


class Capacity:
    """At most `replicas` at once; a job takes all its replicas' places together, first come, first served.

    A large job at the head of the line is not overtaken by smaller ones behind it: it would never start.
    """

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self._line: deque[Turn] = deque()
        self._taken: set[Turn] = set()

    def has_room_for(self, count: int) -> bool:
        """Whether the turn of a `line_up(count)` would come at once."""
        return not self._line and count <= self._free

    def line_up(self, count: int) -> Turn:
        """The last turn of the line, for `count` places, at most `replicas`; to be released, come or not."""
        turn = Turn(count)
        self._line.append(turn)
        self._admit()
        return turn

    def release(self, turn: Turn) -> None:
        """Give the places back, or leave the line. Safe to call twice."""
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
