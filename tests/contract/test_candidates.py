"""A run tries its candidates: each is recorded before it is submitted, and no abandoned job is adopted."""

from datetime import timedelta

import pytest

from tests.contract.boundaries import At, dies_after, dies_before, raising
from tests.contract.candidates import Refusing, drop, failed_with, kept, stock_out
from tests.contract.rooms import TWO_REGIONS, full, too_fast
from tests.contract.world import ELSEWHERE, LEASE, REGION, Killed, World
from trainmaster.orchestrator.core.admission.waiting import PAUSE_MOST_S
from trainmaster.orchestrator.core.errors import SubmissionRefused, SubmissionUnknown
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.runs.states import RunState


def test_a_fallback_in_another_region_is_submitted_read_and_settled_there() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    sent = Refusing(world, full(), full())
    world.launch(incoming)
    record = kept(world, incoming.run_id)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    assert record.job is not None
    assert (record.submission.candidate, job_region(record.job.name)) == (2, ELSEWHERE)
    assert [one.candidate for one in record.submission.tries] == [0, 1]
    assert "quota metrics" in record.submission.tries[0].outcome
    world.complete(world.hint(world.train(record)))
    assert world.record(incoming.run_id).state is RunState.SUCCEEDED


def test_after_the_last_candidate_the_first_is_due_again_after_a_pause() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    sent = Refusing(world, full(), full(), full())
    world.launch(incoming)
    record = kept(world, incoming.run_id)
    assert (record.state, record.submission.candidate) == (RunState.WAITING, 0)
    assert record.admission.waiting is not None
    assert record.admission.waiting.not_before > world.clock.now()
    world.clock.advance(timedelta(seconds=31))
    world.reconcile()
    assert world.record(incoming.run_id).state is RunState.SUBMITTED
    assert sent.machines[-1] == "n1-standard-4"


def test_late_log_entries_of_an_abandoned_job_change_nothing() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    world.launch(incoming)
    old = stock_out(world, world.record(incoming.run_id))
    world.complete(world.hint(old))
    before = world.record(incoming.run_id)
    assert before.state is RunState.SUBMITTED
    world.complete(world.hint(old, insert_id="again"))
    assert world.record(incoming.run_id) == before
    assert all(not problem.startswith("a second job") for problem in before.problems)


def test_an_abandoned_job_is_never_adopted() -> None:
    """The process crashes once the stockout is recorded; the process that takes over finds only the old job."""
    world = World(TWO_REGIONS)
    incoming = drop(world)
    world.launch(incoming)
    old = stock_out(world, world.record(incoming.run_id))
    with pytest.raises(Killed):
        world.complete(world.hint(old), dies_before("write status"))
    assert world.record(incoming.run_id).state is RunState.WAITING
    world.reconcile()
    record = kept(world, incoming.run_id)
    assert record.job is not None
    assert record.job.name != old.name
    assert len(world.jobs.all()) == 2


def test_a_candidate_is_on_record_before_it_is_submitted() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    Refusing(world, full(), full())
    seen: list[int] = []
    world.launch(
        incoming, At("submit", before=lambda: seen.append(world.record(incoming.run_id).submission.candidate))
    )
    assert seen == [0, 1, 2]


def test_a_job_of_another_candidate_is_found_where_it_was_submitted() -> None:
    """Killed after the submission of the last candidate: the job is in another region."""
    world = World(TWO_REGIONS)
    incoming = drop(world)
    Refusing(world, full(), full())
    with pytest.raises(Killed):
        world.launch(incoming, dies_after("submit"))
    world.clock.advance(LEASE)
    world.reconcile()
    (job,) = world.jobs.all()
    record = kept(world, incoming.run_id)
    assert record.job is not None
    assert (record.job.name, job_region(job.name)) == (job.name, ELSEWHERE)


def test_an_answer_that_was_lost_on_a_later_candidate_is_looked_for_there() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    Refusing(world, full())
    world.launch(incoming, At("submit", after=raising(SubmissionUnknown("cut"))))
    record = kept(world, incoming.run_id)
    assert (record.state, record.submission.candidate) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 1


def test_a_service_that_is_asked_too_fast_is_asked_for_the_same_candidate_after_a_moment() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    sent = Refusing(world, too_fast())
    world.launch(incoming)
    record = kept(world, incoming.run_id)
    assert (record.state, record.submission.candidate) == (RunState.WAITING, 0)
    assert record.admission.waiting is not None
    assert record.admission.waiting.rate_limited
    assert (
        timedelta(0)
        < record.admission.waiting.not_before - world.clock.now()
        <= timedelta(seconds=PAUSE_MOST_S)
    )
    world.clock.advance(timedelta(seconds=PAUSE_MOST_S + 1))
    world.reconcile()
    assert sent.machines == ["n1-standard-4", "n1-standard-4"]
    assert world.record(incoming.run_id).state is RunState.SUBMITTED


def test_a_candidate_that_is_refused_for_good_leaves_the_others() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    sent = Refusing(world, full(), SubmissionRefused(400, "no such machine"))
    world.launch(incoming)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    record = kept(world, incoming.run_id)
    assert record.state is RunState.SUBMITTED
    assert "no such machine" in record.submission.tries[1].outcome


def test_a_run_whose_every_candidate_is_refused_for_good_fails() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    Refusing(world, *(SubmissionRefused(400, "no such machine") for _ in range(3)))
    world.launch(incoming)
    failed_with("no such machine", world, incoming.run_id)
