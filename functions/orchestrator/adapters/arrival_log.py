"""Arrivals made durable together: one new object holds everything that came while the last one was written.

The cost of an event falls as the load rises. No object is written twice, none is read, and nothing is listed.
"""

import secrets
import threading

from orchestrator.adapters.objects import Objects
from orchestrator.core.errors import GenerationMoved, ServiceFailed
from orchestrator.core.retrain.arrival import ArrivedObject, encoded_batch
from orchestrator.core.retrain.names import batch_object
from orchestrator.ports import Clock


class _Batch:
    """Arrivals that wait to be written together, and how that ended."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrivals: list[ArrivedObject] = []
        self.ended = False
        self.durable = False
        self.reason = "its writer was stopped"


class ArrivalLog:
    """One process's log: keep one for the life of the process. Safe to use from many threads at once.

    At most one write is in flight. Whoever finds none writes everything that waits; the others wait for it.
    """

    def __init__(self, objects: Objects, bucket: str, clock: Clock) -> None:
        self._objects = objects
        self._bucket = bucket
        self._clock = clock
        self._instance = secrets.token_hex(8)
        self._changed = threading.Condition()
        self._writing = False
        self._waiting = _Batch(1)

    def append(self, arrival: ArrivedObject) -> int:
        with self._changed:
            batch = self._waiting
            batch.arrivals.append(arrival)
            self._changed.wait_for(lambda: batch.ended or not self._writing)
            leads = not batch.ended
            if leads:
                self._writing = True
                self._waiting = _Batch(batch.number + 1)
        if leads:
            self._write(batch)
        if not batch.durable:
            raise ServiceFailed("The arrivals' batch", f"keep {arrival.identity}", batch.reason)
        return len(batch.arrivals) if leads else 0

    def _write(self, batch: _Batch) -> None:
        try:
            self._create(batch)
            batch.durable = True
        except Exception as error:  # told to every thread whose arrival is in the batch
            batch.reason = f"{type(error).__name__}: {error}"
        finally:
            with self._changed:
                batch.ended = True
                self._writing = False
                self._changed.notify_all()

    def _create(self, batch: _Batch) -> None:
        name = batch_object(self._clock.now(), self._instance, batch.number)
        try:
            self._objects.write(
                self._bucket,
                name,
                encoded_batch(batch.arrivals),
                if_generation=0,
                content_type="application/x-ndjson",
            )
        except GenerationMoved:
            # Nobody else makes this name: the client repeated a write of ours whose answer was lost.
            return
