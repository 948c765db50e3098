"""Arrivals made durable together: one new object holds everything that came while the last one was written.

The cost of an event falls as the load rises. No object is written twice, none is read, and nothing is listed.
"""

import secrets
import threading

from trainmaster.orchestrator.adapters.objects import Objects
from trainmaster.orchestrator.core.errors import GenerationMoved, ServiceFailed
from trainmaster.orchestrator.core.retraining.rules.names import batch_object
from trainmaster.orchestrator.core.retraining.signals.arrival import ArrivedObject, encoded_batch
from trainmaster.orchestrator.ports.clock import Clock


class Group:
    """Arrivals that are written together, and how that ended. `number` counts the groups of a process from 1."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrivals: list[ArrivedObject] = []
        self.ended = False
        self.durable = False
        self.reason = "its writer was stopped"


class GroupCommit:
    """Which arrivals are written together: at most one group at a time. No threads, no clock, no storage."""

    def __init__(self) -> None:
        self.writing = False
        self._waiting = Group(1)

    @property
    def waiting(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._waiting.arrivals)

    def add(self, arrival: ArrivedObject) -> Group:
        """The group that the arrival waits in."""
        self._waiting.arrivals.append(arrival)
        return self._waiting

    def begin(self) -> Group:
        """The group to write now: everything that waits. Whatever comes from now on is the next one's."""
        group, self._waiting = self._waiting, Group(self._waiting.number + 1)
        self.writing = True
        return group

    def end(self, group: Group) -> None:
        group.ended = True
        self.writing = False


class ArrivalLog:
    """One process's log: keep one for the life of the process. Safe to use from many threads at once.

    Whoever finds no write in flight writes everything that waits; the others wait for it.
    """

    def __init__(self, objects: Objects, bucket: str, clock: Clock) -> None:
        self._objects = objects
        self._bucket = bucket
        self._clock = clock
        self._instance = secrets.token_hex(8)
        self._changed = threading.Condition()
        self._commit = GroupCommit()

    def append(self, arrival: ArrivedObject) -> int:
        with self._changed:
            group = self._commit.add(arrival)
            self._changed.wait_for(lambda: group.ended or not self._commit.writing)
            leads = not group.ended
            if leads:
                self._commit.begin()
        if leads:
            self._write(group)
        if not group.durable:
            raise ServiceFailed("The log of arrivals", f"keep {arrival.identity}", group.reason)
        return len(group.arrivals) if leads else 0

    def _write(self, group: Group) -> None:
        try:
            self.create(group)
            group.durable = True
        except Exception as error:  # told to every thread whose arrival is in the group
            group.reason = f"{type(error).__name__}: {error}"
        finally:
            with self._changed:
                self._commit.end(group)
                self._changed.notify_all()

    def create(self, group: Group) -> None:
        """Write the group's object.

        Raises:
            ServiceFailed: it may or may not be there.
        """
        name = batch_object(self._clock.now(), self._instance, group.number)
        try:
            self._objects.write(
                self._bucket,
                name,
                encoded_batch(group.arrivals),
                if_generation=0,
                content_type="application/x-ndjson",
            )
        except GenerationMoved:
            # Nobody else makes this name: the client repeated a write of ours whose answer was lost.
            return
