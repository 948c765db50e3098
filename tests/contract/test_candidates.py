"""A run tries its candidates: each is recorded before it is submitted, and no abandoned job is adopted."""

from datetime import timedelta

from tests.contract.boundaries import At
from tests.contract.candidates import Refusing, drop, failed_with, kept, stock_out
from tests.contract.rooms import TWO_REGIONS, full
from tests.contract.world import ELSEWHERE, REGION, World
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import SubmissionRefused
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.runs.states import RunState


def test_a_fallback_in_another_region_is_submitted_read_and_settled_there() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    sent = Refusing(world, full(), full())
    world.launch(incoming)
    record = kept(world, incoming.run_id)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    assert (record.submission.candidate, job_region(present(record.job).name)) == (2, ELSEWHERE)
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
    assert present(record.admission.waiting).not_before > world.clock.now()
    world.reconcile_after(timedelta(seconds=31))
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


def test_a_candidate_is_on_record_before_it_is_submitted() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    Refusing(world, full(), full())
    seen: list[int] = []
    world.launch(
        incoming, At("submit", before=lambda: seen.append(world.record(incoming.run_id).submission.candidate))
    )
    assert seen == [0, 1, 2]


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
