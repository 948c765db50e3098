"""The cause of a cancellation, where the service names only its job's state: an order, the timeout, or someone else."""

from datetime import timedelta

import pytest

from tests.contract.test_complete import launched
from tests.narrowing import present
from trainmaster.orchestrator.core.runs.job import Failure, JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.submission.resume import cancel


@pytest.mark.parametrize(
    ("is_ordered", "ran_s", "reason"),
    [
        (True, 0, "its cancellation was requested at 2026-"),
        (False, 24 * 3600 - 1, "its job was cancelled outside Trainmaster. Vertex AI says: CANCELED"),
        (False, 24 * 3600, "the job ran longer than its timeout of 86400 s. Vertex AI says: CANCELED"),
    ],
)
def test_a_cancelled_run_says_why_its_job_was_cancelled(is_ordered: bool, ran_s: int, reason: str) -> None:
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.RUNNING)
    if is_ordered:
        cancel(world.services(), world.ledger.present(incoming.run_id))
    world.clock.advance(timedelta(seconds=ran_s))
    world.jobs.become(job.name, JobState.CANCELLED, error=Failure(code=1, message="CANCELED"))
    world.complete(world.hint(job, tells_end=False))
    ended = world.record(incoming.run_id)
    assert ended.state is RunState.CANCELLED
    assert present(ended.failure).message.startswith(reason)
