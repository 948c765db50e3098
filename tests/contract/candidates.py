"""A request with three candidates, and a job service that refuses the first ones."""

import json
from datetime import timedelta
from typing import Any

from tests.contract.retraining import SMALL
from tests.contract.rooms import NO_CAPACITY, Answering
from tests.contract.schemas import RECORD
from tests.contract.world import ELSEWHERE, World
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState
from trainmaster.orchestrator.core.runs.record import RunRecord

WITH_FALLBACKS: dict[str, Any] = {
    **SMALL,
    "fallbacks": [{"cluster": {"chief": {"machine": "n1-standard-8"}}}, {"region": ELSEWHERE}],
}


class Refusing(Answering):
    """Answers every process's submissions."""

    def __init__(self, world: World, *answers: TrainmasterError) -> None:
        super().__init__(world, *answers)
        world.jobs.submit = self.submit  # type: ignore[method-assign]  # the test's service answers instead

    @property
    def machines(self) -> list[str]:
        bodies: list[Any] = [each.body for each in self.sent]
        return [body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["machineType"] for body in bodies]

    @property
    def regions(self) -> list[str]:
        return [each.parent.rpartition("/")[2] for each in self.sent]


def drop(world: World) -> IncomingDocument:
    return world.drop(json.dumps(WITH_FALLBACKS).encode(), "requests/a.json")


def stock_out(world: World, record: RunRecord, problem: Failure = NO_CAPACITY) -> Job:
    """The run's job ends for lack of capacity."""
    world.clock.advance(timedelta(seconds=30))
    return world.jobs.become(present(record.job).name, JobState.FAILED, error=problem, ran=False)


def kept(world: World, run_id: str) -> RunRecord:
    """The record, checked against its schema and for a lossless round trip."""
    record = world.record(run_id)
    RECORD.validate(encoded(record))
    assert decoded(RunRecord, encoded(record)) == record
    return record
