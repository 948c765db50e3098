"""A stream of data events on a virtual clock, with every storage operation counted.

The grouping, the objects, the tick and its decisions are the real ones; only time is simulated.
"""

import heapq
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from tests.contract.retraining import DATA, RuleWorld
from tests.contract.world import LEDGER, PROJECT, START
from tests.memory import ManualClock, MemoryJobs, MemoryObjects
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.retraining.arrivals import ARRIVALS_PREFIX, ArrivedObject
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.ports.objects import Listed, Stored
from trainmaster.orchestrator.stores.arrivals import ArrivalLog
from trainmaster.orchestrator.stores.ledger import Ledger

WRITE_S = 0.05
"""How long Cloud Storage takes to write a small object."""
SUBMISSION_S = 1.0
"""How long Vertex AI takes to create a job."""
READ_S = 0.003
"""What reading a batch adds to a tick: 30 ms each, ten at once."""
TICK_S = 60.0


@dataclass
class Meter:
    """Operations by verb and top folder, and writes of each name in each second of the virtual clock."""

    operations: Counter[tuple[str, str]] = field(default_factory=Counter)
    writes: Counter[tuple[str, int]] = field(default_factory=Counter)

    def count(self, verb: str, name: str) -> None:
        self.operations[verb, name.partition("/")[0]] += 1

    def of(self, verb: str) -> int:
        return sum(count for (each, _), count in self.operations.items() if each == verb)

    @property
    def most_writes_in_a_second(self) -> int:
        return max(self.writes.values())


class MeteredObjects(MemoryObjects):
    """Buckets in memory whose operations are metered."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.meter = Meter()
        self._now = clock.now
        self._advance = clock.advance
        self._counting = threading.Lock()

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        with self._counting:
            self.meter.count("read", name)
            if name.startswith(ARRIVALS_PREFIX):
                self._advance(timedelta(seconds=READ_S))
        return super().read(bucket, name, generation, max_bytes=max_bytes)

    def describe(self, bucket: str, name: str, generation: int | None = None) -> Listed:
        with self._counting:
            self.meter.count("read", name)
        return super().describe(bucket, name, generation)

    def write(self, bucket: str, name: str, content: bytes, **options: Any) -> int:  # Any: the port's
        self.meter.count("write", name)
        self.meter.writes[name, int((self._now() - START).total_seconds())] += 1
        return super().write(bucket, name, content, **options)

    def put(self, bucket: str, name: str, content: bytes) -> int:
        """A user writes an object, which is not metered; its generation."""
        return super().write(bucket, name, content, if_generation=None)

    def copy(
        self, source: tuple[str, str, int], bucket: str, name: str, *, token: str | None = None
    ) -> Listed | str:
        self.meter.count("write", name)
        return super().copy(source, bucket, name, token=token)

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        with self._counting:
            self.meter.count("delete", name)
        super().delete(bucket, name, if_generation=if_generation)

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        # A page of Cloud Storage's listing holds 1,000 names, and each page is an operation.
        self.meter.count("list", prefix)
        for number, listed in enumerate(super().listing(bucket, prefix, after), start=1):
            yield listed
            if number % 1000 == 0:
                self.meter.count("list", prefix)


class SlowJobs(MemoryJobs):
    """A job service that takes SUBMISSION_S to create a job."""

    def __init__(self, world: RuleWorld) -> None:
        super().__init__(world.clock, project=PROJECT)
        self._wait = world.wait

    def submit(self, submission: Submission) -> Job:
        self._wait(SUBMISSION_S)
        return super().submit(submission)


class MeteredWorld(RuleWorld):
    """A deployment in memory whose storage operations are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.objects = self.metered = MeteredObjects(self.clock)
        self.jobs = SlowJobs(self)
        self.ledger = Ledger(self.objects, LEDGER)
        self.log = ArrivalLog(self.objects, LEDGER, self.clock)

    @property
    def meter(self) -> Meter:
        return self.metered.meter


class Instance:
    """One instance of the function, which has one write in flight at most."""

    def __init__(self, world: MeteredWorld, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._log = ArrivalLog(world.objects, LEDGER, world.clock)
        self._later = later

    def receive(self, incoming: ArrivedObject) -> None:
        self._log.waiting.arrivals.append(incoming)
        self._write()

    def _write(self) -> None:
        if self._log.writing or not self._log.waiting.arrivals:
            return
        group = self._log.begin()

        def ended() -> None:
            self._log.create(group)
            self._log.end(group)
            self._write()

        self._later(WRITE_S, ended)


@dataclass(kw_only=True)
class Simulation:
    """A stream of data events to a world, then silence; one tick a minute.

    Every `twice`th event is delivered a second time, two seconds later, to another instance.
    """

    world: MeteredWorld
    events_per_s: int
    seconds: int
    instances: int
    silence_s: float = 180.0
    twice: int = 100
    _now_s: float = 0.0
    _order: Iterator[int] = field(default_factory=itertools.count)
    _agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)

    @property
    def events(self) -> int:
        return self.events_per_s * self.seconds

    def run(self) -> None:
        instances = [Instance(self.world, self._later) for _ in range(self.instances)]
        for number in range(self.events):
            self._at(number / self.events_per_s, partial(self._deliver, instances, number))
        ticks = int((self.seconds + self.silence_s) / TICK_S)
        for number in range(1, ticks + 1):
            self._at(number * TICK_S, self._tick)
        while self._agenda:
            at, _, act = heapq.heappop(self._agenda)
            self._now_s = max(self._now_s, at)
            behind = self._now_s - (self.world.clock.now() - START).total_seconds()
            self.world.clock.advance(timedelta(seconds=max(behind, 0.0)))
            act()

    def _tick(self) -> None:
        self.world.tick()

    def _deliver(self, instances: list[Instance], number: int) -> None:
        name = f"stream/{number}.jpg"
        incoming = ArrivedObject(
            bucket=DATA,
            name=name,
            generation=self.world.metered.put(DATA, name, b"1"),
            size_bytes=1,
            created_at=self.world.clock.now(),
        )
        instances[number % len(instances)].receive(incoming)
        if number % self.twice == 0:
            self._later(2.0, lambda: instances[(number + 1) % len(instances)].receive(incoming))

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._at(self._now_s + seconds, act)

    def _at(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (seconds, next(self._order), act))
