"""Arrivals are durable before they are acknowledged, in as few objects as the load allows."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.world import LEDGER, START
from tests.memory import ManualClock, MemoryObjects
from trainmaster.orchestrator.core.errors import GenerationMoved, ServiceFailed
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject
from trainmaster.orchestrator.stores.arrivals import ArrivalLog, Arrivals


class Gate(MemoryObjects):
    """A store whose writes block until they are released, and may fail."""

    def __init__(self) -> None:
        super().__init__(ManualClock(START))
        self.entered = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.failures: list[BaseException] = []

    def write(self, bucket: str, name: str, content: bytes, **options: Any) -> int:  # Any: the port's
        self.entered.release()
        assert self.let.acquire(timeout=60)
        if self.failures:
            raise self.failures.pop(0)
        return super().write(bucket, name, content, **options)


def arrival(number: int) -> ArrivedObject:
    return ArrivedObject(bucket="b", name=f"{number}.jpg", generation=1, size_bytes=1, created_at=START)


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects(ManualClock(START))


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def log(gate: Gate) -> ArrivalLog:
    return ArrivalLog(gate, LEDGER, ManualClock(START))


def batches(objects: MemoryObjects) -> list[list[str]]:
    arrivals = Arrivals(objects, LEDGER)
    return [[each.name for each in batch.arrivals] for batch in arrivals.read(arrivals.names(100))]


def while_one_is_written(gate: Gate, log: ArrivalLog, pool: ThreadPoolExecutor, others: int) -> list[object]:
    """Results of one arrival, and of `count` others that arrive while it is being written."""

    def outcome(number: int) -> object:
        try:
            return log.append(arrival(number))
        except ServiceFailed as error:
            return error

    first = pool.submit(outcome, 0)
    assert gate.entered.acquire(timeout=60)
    rest = [pool.submit(outcome, number) for number in range(1, others + 1)]
    waiting = log.waiting
    deadline = threading.Event()
    while len(waiting.arrivals) < others:
        assert not deadline.wait(0.001)
    gate.let.release()
    gate.let.release()
    return [each.result(timeout=60) for each in (first, *rest)]


def test_arrivals_during_a_write_become_one_batch(gate: Gate, log: ArrivalLog) -> None:
    with ThreadPoolExecutor(10) as pool:
        written = while_one_is_written(gate, log, pool, 9)
    assert sorted(map(len, batches(gate))) == [1, 9]
    assert written[0] == 1
    assert sorted(written[1:], key=str) == [0] * 8 + [9]  # one of them wrote for all


def test_no_arrival_is_reported_durable_when_its_batch_failed(gate: Gate, log: ArrivalLog) -> None:
    class Stopped(BaseException):
        """The instance is shut down."""

    gate.failures = [
        ServiceFailed("Cloud Storage", "write", "503"),
        ServiceFailed("Cloud Storage", "write", "x"),
    ]
    with ThreadPoolExecutor(4) as pool:
        outcomes = while_one_is_written(gate, log, pool, 3)
    assert all(isinstance(each, ServiceFailed) and each.retryable for each in outcomes)
    assert batches(gate) == []
    gate.failures = [Stopped()]
    gate.let.release()
    with pytest.raises(Stopped):
        log.append(arrival(1))
    gate.let.release()
    assert log.append(arrival(1)) == 1  # and the next one is not kept waiting
    assert batches(gate) == [["1.jpg"]]


def test_a_write_whose_answer_was_lost_counts_as_ours(gate: Gate, log: ArrivalLog) -> None:
    gate.failures = [GenerationMoved("gs://ledger/arrivals/x", 0)]
    gate.let.release()
    assert log.append(arrival(1)) == 1


def test_two_instances_never_write_one_name(objects: MemoryObjects) -> None:
    logs = [ArrivalLog(objects, LEDGER, ManualClock(START)) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: logs[number % 8].append(arrival(number)), range(64)))
    assert sorted(name for batch in batches(objects) for name in batch) == sorted(
        f"{number}.jpg" for number in range(64)
    )


def test_a_foreign_object_among_the_batches_is_ignored(objects: MemoryObjects) -> None:
    objects.write(LEDGER, "arrivals/a-note", b"not one of ours", if_generation=None)
    arrivals = Arrivals(objects, LEDGER)
    assert [batch.arrivals for batch in arrivals.read([*arrivals.names(10), "arrivals/gone"])] == [()]
