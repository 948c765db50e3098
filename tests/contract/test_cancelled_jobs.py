"""The cause of a cancellation, where the service names only its job's state: an order, the timeout, or someone else."""

from datetime import timedelta

import pytest

from tests.contract.test_complete import launched
from trainmaster.orchestrator.core.runs.job import Failure, JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.submission.resume import cancel


@pytest.mark.parametrize(
    ("is_ordered", "words", "reason"),
    [
        (True, "CANCELED", "its cancellation was requested at 2026-"),
        (False, "CANCELED", "its job was cancelled outside Trainmaster"),
    ],
)
def test_a_cancelled_run_says_who_cancelled_it(is_ordered: bool, words: str, reason: str) -> None:
    world, incoming, job = launched()
    if is_ordered:
        cancel(world.services(), world.ledger.present(incoming.run_id))
    world.jobs.become(job.name, JobState.CANCELLED, error=Failure(code=1, message=words))
    world.complete(world.hint(job, tells_end=False))
    ended = world.record(incoming.run_id)
    assert ended.state is RunState.CANCELLED
    assert ended.failure is not None
    assert ended.failure.message.startswith(reason)


@pytest.mark.parametrize(
    ("ran_s", "reason"),
    [
        (24 * 3600, "the job ran longer than its timeout of 86400 s"),
        (24 * 3600 - 1, "its job was cancelled outside Trainmaster"),
    ],
)
def test_a_job_that_was_cancelled_at_its_timeout_has_that_as_its_reason(ran_s: int, reason: str) -> None:
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.RUNNING)
    world.clock.advance(timedelta(seconds=ran_s))
    world.jobs.become(job.name, JobState.CANCELLED, error=Failure(code=1, message="CANCELED"))
    world.complete(world.hint(job, tells_end=False))
    failure = world.record(incoming.run_id).failure
    assert failure is not None
    assert failure.message == f"{reason}. Vertex AI says: CANCELED"
