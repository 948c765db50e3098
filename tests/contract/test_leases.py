"""A delivery that failed, and left no job, keeps no other delivery away: its lease ends with it."""

import pytest

from tests.contract.boundaries import At, raising
from tests.contract.rooms import Answering
from tests.contract.world import Boundary, World
from trainmaster.orchestrator.core.errors import LeaseHeld, ServiceFailed, SubmissionUnknown
from trainmaster.orchestrator.core.runs.states import RunState

NO_ROOM = ServiceFailed("Cloud Storage", "write", "507 the disk is full")


def calls_of_a_launch() -> list[str]:
    world, boundary = World(), Boundary()
    world.launch(world.drop(), boundary)
    return boundary.calls


CALLS = calls_of_a_launch()
RECORD, SUBMISSION = CALLS.index("write runs"), CALLS.index("submit")


@pytest.mark.parametrize("point", range(RECORD + 1, SUBMISSION))
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_after_a_failure_before_submission_a_redelivery_submits_at_once(point: int, is_after: bool) -> None:
    world = World()
    incoming = world.drop()
    failing = Boundary(die_at=point, die_after_the_call=is_after, death=lambda _: NO_ROOM)
    try:
        world.launch(incoming, failing)
    except ServiceFailed:
        world.launch(incoming)
    assert len(world.jobs.all()) == 1
    assert world.record(incoming.run_id).state is RunState.SUBMITTED


def test_a_submission_without_answer_is_counted_although_the_search_for_its_job_fails(world: World) -> None:
    incoming = world.drop()
    cut = Answering(world, SubmissionUnknown("connection cut"), does_it=False)
    with pytest.raises(SubmissionUnknown):
        world.launch(incoming, At("find jobs", before=raising(NO_ROOM)), cut)
    assert world.record(incoming.run_id).submission.unanswered == 1


def test_a_delivery_that_may_have_left_a_job_keeps_its_lease(world: World) -> None:
    incoming = world.drop()
    with pytest.raises(ServiceFailed):
        world.launch(incoming, At("submit", after=raising(NO_ROOM)))
    with pytest.raises(LeaseHeld):
        world.launch(incoming)
    assert len(world.jobs.all()) == 1
