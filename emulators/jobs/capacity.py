"""Room for replicas on this machine, given out in the order it was asked for."""

import asyncio
from collections import deque


class Capacity:
    """At most `replicas` at once; a job takes all its replicas' places together, first come, first served.

    A large job at the head of the line is not overtaken by smaller ones behind it: it would never start.
    """

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self._free = replicas
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def has_room_for(self, count: int) -> bool:
        """Whether `acquire(count)` would return at once."""
        return not self._waiting and count <= self._free

    async def acquire(self, count: int) -> None:
        """Return once `count` places are taken for the caller. `count` must not exceed `replicas`.

        Cancelling the wait gives up the place in the line.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(count)
            else:
                self._waiting.remove((count, turn))
                self._admit()
            raise

    def release(self, count: int) -> None:
        """Give `count` places back."""
        self._free += count
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            count, turn = self._waiting.popleft()
            self._free -= count
            turn.set_result(None)
