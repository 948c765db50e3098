"""The data events that no tick has counted yet.

They are made durable together: each new object holds everything that arrived while the last one was written, so the
cost per event falls as the load rises. Each object is created once and deleted once.
"""

import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.retraining.arrivals import (
    ARRIVALS_PREFIX,
    ArrivedObject,
    Batch,
    batch_object,
    encoded_batch,
    parse_batch,
)
from trainmaster.orchestrator.core.sizes import MAX_BATCH_BYTES
from trainmaster.orchestrator.ports.objects import Objects
from trainmaster.orchestrator.ports.services import Clock
from trainmaster.orchestrator.stores.store import NDJSON, Store

AT_ONCE = 10
"""Batches that are read or deleted in parallel: as many as the storage client's connection pool holds."""


class Group:
    """Arrivals that are written together, and why they are not durable; `number` counts a process's groups from 1."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrivals: list[ArrivedObject] = []
        self.ended = False
        self.failure = "its writer was stopped"


class ArrivalLog(Store):
    """One process's log: keep one for the life of the process. Safe to use from many threads.

    A thread that finds no write in flight writes everything that waits; the other threads wait for it.
    `begin`, `create` and `end` are its steps, for one thread at a time.
    """

    def __init__(self, objects: Objects, bucket: str, clock: Clock) -> None:
        super().__init__(objects, bucket)
        self._clock = clock
        self._instance = secrets.token_hex(8)
        self._changed = threading.Condition()
        self.waiting = Group(1)
        self.writing = False

    def append(self, arrival: ArrivedObject) -> int:
        """Return once the arrival is durable: the size of its group to the thread that wrote it, 0 to the others.

        Raises:
            ServiceFailed: it may or may not be durable. Appending it again is safe: it is counted once.
        """
        with self._changed:
            group = self.waiting
            group.arrivals.append(arrival)
            self._changed.wait_for(lambda: group.ended or not self.writing)
            leads = not group.ended
            if leads:
                self.begin()
        if leads:
            self._write(group)
        if group.failure:
            raise ServiceFailed("The log of arrivals", f"keep {arrival.identity}", group.failure)
        return len(group.arrivals) if leads else 0

    def _write(self, group: Group) -> None:
        try:
            self.create(group)
            group.failure = ""
        except Exception as error:  # reported to every thread whose arrival is in the group
            group.failure = f"{type(error).__name__}: {error}"
        finally:
            with self._changed:
                self.end(group)
                self._changed.notify_all()

    def begin(self) -> Group:
        """The group to write now: everything that waits. Later arrivals belong to the next group."""
        group, self.waiting = self.waiting, Group(self.waiting.number + 1)
        self.writing = True
        return group

    def create(self, group: Group) -> None:
        """Write the group's object.

        Raises:
            ServiceFailed: it may or may not exist.
        """
        name = batch_object(self._clock.now(), self._instance, group.number)
        # No other process uses this name: if it exists, the client repeated our write after a lost response.
        self._write_once(name, encoded_batch(group.arrivals), NDJSON)

    def end(self, group: Group) -> None:
        group.ended = True
        self.writing = False


class Arrivals(Store):
    """The batches that the logs of all processes have written."""

    def names(self, most: int) -> Sequence[str]:
        """The first batches, oldest first, at most `most`."""
        listed = self.objects.listing(self.bucket, ARRIVALS_PREFIX)
        return [entry.name for entry in islice(listed, most)]

    def read(self, names: Sequence[str]) -> Sequence[Batch]:
        """These batches. A deleted one is left out; one that cannot be read holds no arrivals."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [batch for batch in pool.map(self._batch, names) if batch is not None]

    def delete(self, names: Sequence[str]) -> None:
        """Remove the batches. Safe to repeat."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: self.objects.delete(self.bucket, name), names))

    def _batch(self, name: str) -> Batch | None:
        stored = self._find_bounded(name, MAX_BATCH_BYTES)
        if stored is None:
            return None  # another tick has counted it
        try:
            return parse_batch(name, stored.content)
        except ValueError:
            # Only the log writes here, and whole objects: a stray file must not stop the tick.
            return Batch(name=name, arrivals=())
