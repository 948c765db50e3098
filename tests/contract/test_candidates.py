"""A run tries its candidates, each on record before it is submitted; a stockout abandons the job and not the run."""

import json
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, only_at
from tests.contract.candidates import Refusing, drop, kept, stock_out
from tests.contract.rooms import NO_CAPACITY, TWO_REGIONS, full, launched
from tests.contract.schemas import STATUS
from tests.contract.world import ELSEWHERE, REGION, World
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import SubmissionRefused, SubmissionUnknown
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.runs.job import Failure, JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take, take_and_admit


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
    record = kept(world, incoming.run_id)
    assert record.state is RunState.FAILED
    assert "no such machine" in present(record.failure).message


def test_a_job_without_capacity_ends_no_run_and_the_next_candidate_is_taken() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    sent = Refusing(world)
    world.launch(incoming)
    first = stock_out(world, world.record(incoming.run_id))
    world.complete(world.hint(first))
    record = kept(world, incoming.run_id)
    assert record.state is RunState.SUBMITTED
    assert (record.submission.candidate, record.round) == (1, 1)
    assert record.submission.abandoned_jobs[0].job == first.name
    assert [one.candidate for one in record.submission.tries] == [0]
    assert sent.machines == ["n1-standard-4", "n1-standard-8"]
    assert present(record.job).name != first.name


L4 = {"cluster": {"chief": {"machine": "g2-standard-4", "accelerator": {"type": "NVIDIA_L4", "count": 1}}}}
FLEXIBLE = L4 | {
    "scheduling": {"timeout_s": 3600, "flex_start": True, "max_wait_s": 600},
    "fallbacks": [{"scheduling": {"flex_start": False, "max_wait_s": None}}],
}


def waited_in_vain(**changes: object) -> tuple[World, str, str]:
    """A run whose flexible start has waited as long as it may, and the name of its job."""
    world = World(TWO_REGIONS)
    run_id = launched(world, **{**FLEXIBLE, **changes})
    job = present(world.record(run_id).job)
    world.clock.advance(timedelta(seconds=600))
    return world, run_id, job.name


def test_after_a_flexible_start_that_waited_in_vain_the_next_candidate_is_taken() -> None:
    world, run_id, name = waited_in_vain()
    late = Failure(code=4, message="words of some other kind")
    world.complete(world.hint(world.jobs.become(name, JobState.EXPIRED, error=late, ran=False)))
    record = kept(world, run_id)
    assert (record.state, record.submission.candidate) == (RunState.SUBMITTED, 1)
    assert record.submission.abandoned_jobs[0].reason == late.message


def test_a_flexible_start_that_its_user_cancelled_ends_the_run() -> None:
    world, run_id, name = waited_in_vain()
    incoming = world.drop(json.dumps({"cancel": {"run": run_id}}).encode(), "requests/end.json")
    take(world.services(), incoming)
    world.complete(world.hint(world.jobs.become(name, JobState.CANCELLED, ran=False)))
    assert world.record(run_id).state is RunState.CANCELLED


def test_the_states_that_users_see_only_move_forward_by_rounds() -> None:
    world = World(TWO_REGIONS)
    incoming = drop(world)
    world.launch(incoming)
    old = stock_out(world, world.record(incoming.run_id))
    world.complete(world.hint(old))
    status = world.document("status/requests/a.json.json")
    STATUS.validate(status)
    assert status["state"] == "submitted"
    world.complete(world.hint(world.train(world.record(incoming.run_id))))
    assert world.document("status/requests/a.json.json")["state"] == "succeeded"
    told = dict.fromkeys(notice.id.removeprefix(f"{incoming.run_id}/") for notice in world.notices.published)
    assert list(told) == ["reserved", "submitted", "waiting", "submitted/2", "running", "succeeded"]


def told_at_once(world: World) -> None:
    """The single job finds no capacity, and its end is handled."""
    (job,) = world.jobs.all()
    world.complete(world.hint(world.jobs.become(job.name, JobState.FAILED, error=NO_CAPACITY, ran=False)))


@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "answer lost"])
def test_a_stockout_reported_before_its_submission_is_recorded_is_tried_elsewhere_at_once(
    *, is_lost: bool
) -> None:
    """The job's end arrives while the process that submitted it still holds the lease and has not recorded it."""
    world = World(TWO_REGIONS)
    incoming = drop(world)

    def meanwhile() -> None:
        told_at_once(world)
        world.reconcile()
        if is_lost:
            raise SubmissionUnknown("the connection broke")

    once = At("submit", after=only_at(1, meanwhile))
    list(take_and_admit(world.services(once), incoming))
    record = kept(world, incoming.run_id)
    assert (record.state, record.round) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 2


def test_a_late_settlement_of_the_old_job_does_not_give_the_new_one_up() -> None:
    """One instance pauses before it records the stockout; another records it and submits meanwhile."""
    world = World(TWO_REGIONS)
    incoming = drop(world)
    world.launch(incoming)
    old = stock_out(world, world.record(incoming.run_id))
    another = At("write runs", before=lambda: world.complete(world.hint(old, insert_id="another")))
    world.complete(world.hint(old), another)
    record = kept(world, incoming.run_id)
    assert (record.state, record.round) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 2
