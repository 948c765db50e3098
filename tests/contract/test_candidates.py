"""A run tries its candidates, each on record before it is submitted; a stockout abandons the job and not the run."""

import json
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, only_at, raising
from tests.contract.candidates import WITH_FALLBACKS, Refusing, drop, kept, stock_out
from tests.contract.rooms import NO_CAPACITY, TWO_REGIONS, full, launched
from tests.contract.schemas import STATUS
from tests.contract.world import ELSEWHERE, LEASE, REGION, World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.admission.actual_cost import final_cost
from trainmaster.orchestrator.core.errors import (
    JobNotFound,
    SubmissionRefused,
    SubmissionUnknown,
    TrainmasterError,
)
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Failure, JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take, take_and_admit


def tried(*refusals: TrainmasterError) -> tuple[World, IncomingDocument, Refusing]:
    """A run that was launched while the service refused its first submissions so."""
    world = World(TWO_REGIONS)
    incoming, sent = drop(world), Refusing(world, *refusals)
    world.launch(incoming)
    return world, incoming, sent


def test_a_fallback_in_another_region_is_submitted_read_and_settled_there() -> None:
    world, incoming, sent = tried(full(), full())
    record = kept(world, incoming.run_id)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    assert (record.submission.candidate, job_region(present(record.job).name)) == (2, ELSEWHERE)
    assert [one.candidate for one in record.submission.tries] == [0, 1]
    assert "quota metrics" in record.submission.tries[0].outcome
    world.complete(world.hint(world.train(record)))
    assert world.record(incoming.run_id).state is RunState.SUCCEEDED


def test_after_the_last_candidate_the_first_is_due_again_after_a_pause() -> None:
    world, incoming, sent = tried(full(), full(), full())
    record = kept(world, incoming.run_id)
    assert (record.state, record.submission.candidate) == (RunState.WAITING, 0)
    assert present(record.admission.waiting).not_before > world.clock.now()
    world.reconcile_after(timedelta(seconds=31))
    assert world.record(incoming.run_id).state is RunState.SUBMITTED
    assert sent.machines[-1] == "n1-standard-4"


def test_late_log_entries_of_an_abandoned_job_change_nothing() -> None:
    world, incoming, _ = tried()
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
    world, incoming, sent = tried(full(), SubmissionRefused(400, "no such machine"))
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    record = kept(world, incoming.run_id)
    assert record.state is RunState.SUBMITTED
    assert "no such machine" in record.submission.tries[1].outcome


def test_a_run_whose_every_candidate_is_refused_for_good_fails() -> None:
    world, incoming, _ = tried(*(SubmissionRefused(400, "no such machine") for _ in range(3)))
    record = kept(world, incoming.run_id)
    assert record.state is RunState.FAILED
    assert "no such machine" in present(record.failure).message


def test_a_job_without_capacity_ends_no_run_and_the_next_candidate_is_taken() -> None:
    world, incoming, sent = tried()
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
    world, incoming, _ = tried()
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
def test_a_stockout_reported_before_its_submission_is_recorded_is_tried_elsewhere_by_the_next_tick(
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
    world.reconcile_after(LEASE)
    record = kept(world, incoming.run_id)
    assert (record.state, record.round) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 2


def test_a_late_settlement_of_the_old_job_does_not_give_the_new_one_up() -> None:
    """One instance pauses before it records the stockout; another records it and submits meanwhile."""
    world, incoming, _ = tried()
    old = stock_out(world, world.record(incoming.run_id))
    another = At("write runs", before=lambda: world.complete(world.hint(old, insert_id="another")))
    world.complete(world.hint(old), another)
    record = kept(world, incoming.run_id)
    assert (record.state, record.round) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 2


def given_up(**changes: object) -> tuple[World, str]:
    """A run whose job is given up at its deadline, in a world where cancellations take effect late."""
    world = World(TWO_REGIONS)
    world.jobs.cancels_late = True
    run_id = launched(world, **{**WITH_FALLBACKS, **changes})
    world.reconcile_after(timedelta(seconds=7200))
    return world, run_id


def test_nothing_follows_a_job_that_does_not_start_before_it_is_read_in_an_end_state() -> None:
    world, run_id = given_up()
    (job,) = world.jobs.all()
    giving_up = present(kept(world, run_id).submission.giving_up)
    assert (giving_up.job, giving_up.reason) == (job.name, "it had not started by 2026-03-01 14:00:01 UTC")
    for _ in range(3):
        world.reconcile_after(timedelta(hours=1))
        world.complete(world.hint(job, tells_end=False))
    assert world.record(run_id).state is RunState.SUBMITTED
    assert (len(world.jobs.all()), len(world.jobs.asked_to_cancel)) == (1, 7)
    world.jobs.become(job.name, JobState.CANCELLED, ran=False)
    world.reconcile()
    record = kept(world, run_id)
    (abandoned,) = record.submission.abandoned_jobs
    assert (abandoned.job, abandoned.why, abandoned.cost) == (job.name, "start_deadline", None)
    assert (record.state, record.submission.candidate) == (RunState.SUBMITTED, 1)
    assert record.submission.giving_up is None
    assert present(record.job).name != job.name


def test_a_job_that_starts_while_it_is_given_up_is_kept_and_not_cancelled_again() -> None:
    world, run_id = given_up()
    job = world.jobs.become(world.jobs.all()[0].name, JobState.RUNNING)
    world.reconcile()
    world.reconcile_after(timedelta(hours=2))
    assert len(world.jobs.asked_to_cancel) == 1
    world.complete(world.hint(world.train_job(job)))
    record = kept(world, run_id)
    assert (record.state, record.round) == (RunState.SUCCEEDED, 0)


def test_a_job_that_has_just_started_is_not_given_up_by_a_list_that_is_older() -> None:
    world = World(TWO_REGIONS)
    run_id = launched(world, **WITH_FALLBACKS)
    (job,) = listed = world.jobs.all()
    world.jobs.active = lambda *_: listed  # type: ignore[method-assign]
    world.jobs.become(job.name, JobState.RUNNING)
    world.reconcile_after(timedelta(seconds=7200))
    assert world.jobs.asked_to_cancel == []
    assert kept(world, run_id).state is RunState.RUNNING


def test_what_a_job_cost_that_was_cancelled_just_after_its_start_is_part_of_the_runs_cost() -> None:
    world = World(request_rules_with(admission=Admission(estimates=True)), lambda: PRICES)
    world.jobs.cancels_late = True
    run_id = launched(world, **WITH_FALLBACKS)
    world.reconcile_after(timedelta(seconds=7200))
    first = world.jobs.become(world.jobs.all()[0].name, JobState.RUNNING)
    world.clock.advance(timedelta(minutes=6))
    world.complete(world.hint(world.jobs.become(first.name, JobState.CANCELLED)))
    record = kept(world, run_id)
    spent = present(record.submission.abandoned_jobs[0].cost)
    assert spent > 0
    world.complete(world.hint(world.train(record)))
    cost = present(present(kept(world, run_id).completion).cost)
    assert cost.total == spent + sum(cost.roles.values())
    assert final_cost(world.record(run_id)) == cost.total


def test_an_abandoned_job_that_had_vanished_and_runs_again_is_cancelled_as_a_second_job() -> None:
    world, run_id = given_up()
    (job,) = world.jobs.all()
    world.clock.advance(timedelta(minutes=11))
    listed = world.jobs.active
    world.jobs.active = lambda *_: []  # type: ignore[method-assign]
    world.reconcile(At("read job", before=raising(JobNotFound(job.name))))
    world.jobs.active = listed  # type: ignore[method-assign]
    assert world.record(run_id).submission.candidate == 1
    running = world.jobs.become(job.name, JobState.RUNNING)
    world.complete(world.hint(running, tells_end=False))
    record = kept(world, run_id)
    assert record.submission.second_jobs == (job.name,)
    assert world.jobs.asked_to_cancel[-1] == job.name
    assert present(record.job).name != job.name


def test_the_policys_deadline_is_part_of_the_accepted_request() -> None:
    world = World(request_rules_with(admission=Admission(start_within_s=300)))
    documents = [
        instance_of(dict, present(world.record(launched(world, **changes)).request).document["scheduling"])
        for changes in ({}, {"scheduling": {"start_within_s": 0}})
    ]
    assert [document["start_within_s"] for document in documents] == [300, 0]
