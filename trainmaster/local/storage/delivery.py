"""Delivering what the outbox owes: at least once, in the background, each topic at its own pace."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from trainmaster.local.storage.store import Store

Publish = Callable[[str, Sequence[tuple[bytes, Mapping[str, str]]]], None]
"""Publishes messages (data and attributes) to a topic, `projects/P/topics/T`; called in a worker thread, may block.

Raises when it cannot tell that all of them were taken; they are published again later."""

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0

_log = logging.getLogger(__name__)


class Delivery:
    """Publishes one store's notifications for as long as it runs."""

    def __init__(self, store: Store, publish: Publish, base_url: Callable[[], str]) -> None:
        self._store = store
        self._publish = publish
        self._base_url = base_url
        self._pauses: dict[str, tuple[float, float]] = {}  # topic: length of the pause, when it ends

    async def run(self) -> None:
        """Deliver until cancelled."""
        loop = asyncio.get_running_loop()
        owed = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended; the next start delivers
                loop.call_soon_threadsafe(owed.set)

        self._store.on_owed = wake
        while True:
            owed.clear()
            wait_s = await asyncio.to_thread(self._deliver_all)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(owed.wait(), wait_s)

    def _deliver_all(self) -> float | None:
        """Deliver what can be delivered; the seconds until a paused topic may be tried again, None when nothing is owed."""
        with self._store.lock:
            topics = self._store.outbox.topics()
        waits = [wait_s for topic in topics if (wait_s := self._deliver(topic)) is not None]
        return min(waits, default=None)

    def _deliver(self, topic: str) -> float | None:
        pause_s, until = self._pauses.get(topic, (0.0, 0.0))
        if (left_s := until - time.monotonic()) > 0:
            return left_s
        while True:
            with self._store.lock:
                batch = self._store.outbox.owed(topic, self._base_url())
            if not batch:
                return None
            try:
                self._publish(topic, [(each.data, each.attributes) for each in batch])
            except Exception as failure:  # whatever it is, the notifications stay owed
                pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s or _FIRST_PAUSE_S)
                self._pauses[topic] = (pause_s, time.monotonic() + pause_s)
                _log.warning("%d notifications to %s wait %.1f s: %r", len(batch), topic, pause_s, failure)
                return pause_s
            self._pauses.pop(topic, None)
            with self._store.lock:
                self._store.outbox.settle(topic, batch[-1].id)
