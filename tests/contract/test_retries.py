"""A run whose job started and was lost gets another job; one that its program or its user ended does not."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.candidates import kept
from tests.contract.rooms import Answering, ends, going, launched
from tests.contract.schemas import NOTICE
from tests.contract.world import Boundary, Killed, World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.core.roles import TUNING
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.actual_cost import final_cost
from trainmaster.orchestrator.core.admission.candidates import current_candidate
from trainmaster.orchestrator.core.admission.index_row import index_row_of
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.notices.notice import cloud_event
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.policy.policy import Machines
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take

INTERNAL = Failure(code=13, message="Internal error occurred. Please retry in a few minutes.")
OUT_OF_MEMORY = Failure(
    code=3,
    message="The replica workerpool0-0 ran out of memory and exited with a non-zero status of 137(SIGKILL).",
)
PREEMPTED = Failure(code=3, message="The replica workerpool0-0 exited with a non-zero status of 143.")
EVERYTHING = ["infrastructure", "preemption", "out_of_memory"]
HOUR = timedelta(hours=1)


LADDER = tuple(Machines(types=(f"n1-standard-{cpus}",)) for cpus in (16, 4, 8))


def priced_world() -> World:
    rules = request_rules_with(admission=Admission(estimates=True), machines=LADDER)
    return World(rules, prices=lambda: PRICES)


def retried(
    world: World, retries: int = 2, *, scheduling: dict[str, Any] | None = None, **changes: Any
) -> str:
    terms = {"timeout_s": 3600, "retries": retries, "retry_on": EVERYTHING, **(scheduling or {})}
    return launched(world, scheduling=terms, **changes)


def lose(world: World, run_id: str, error: Failure = INTERNAL) -> Job:
    """The run's job runs for an hour and is lost; its log entry is delivered."""
    job = end_job(world, run_id, error)
    world.complete(world.hint(job))
    return job


def end_job(world: World, run_id: str, error: Failure, state: JobState = JobState.FAILED) -> Job:
    name = present(world.record(run_id).job).name
    world.jobs.become(name, JobState.RUNNING)
    world.clock.advance(HOUR)
    return world.jobs.become(name, state, error=error)


def next_job(world: World, run_id: str) -> RunRecord:
    """The record after the pause and a tick."""
    world.clock.advance(present(world.record(run_id).admission.waiting).not_before - world.clock.now())
    world.reconcile()
    return kept(world, run_id)


def test_a_lost_job_is_followed_by_another_with_the_same_directories_and_both_are_paid() -> None:
    world = priced_world()
    sent = Answering(world)
    world.jobs.submit = sent.submit  # type: ignore[method-assign]  # keeps what was submitted
    run_id = retried(world, scheduling={"retry_on": ["infrastructure"]})
    assert present(present(world.record(run_id).request).estimate).at_most == Decimal("5.4"), (
        "three jobs of an hour"
    )
    first = lose(world, run_id)
    record = kept(world, run_id)
    (gone,) = record.submission.abandoned_jobs
    assert (record.state, record.job, going(world)) == (RunState.WAITING, None, [])
    assert (gone.job, gone.why, gone.cost) == (first.name, "infrastructure", Decimal("1.8"))
    why = "retry 1 of 2 after infrastructure: Internal error occurred. Please retry in a few minutes."
    assert (record.problems, present(record.admission.waiting).reason) == ((why,), why)
    record = next_job(world, run_id)
    assert record.state is RunState.SUBMITTED
    assert sent.sent[0] == sent.sent[1]
    world.jobs.become(present(record.job).name, JobState.RUNNING)
    world.clock.advance(HOUR)
    ends(world, run_id)
    record = kept(world, run_id)
    cost = present(present(record.completion).cost)
    assert (record.state, cost.earlier_jobs) == (RunState.SUCCEEDED, Decimal("1.8"))
    assert cost.total == Decimal("1.8") + cost.roles["chief"] == final_cost(record)
    states = [step.state.value for step in record.history]
    assert states == ["reserved", "submitted", "running", "waiting", "submitted", "running", "succeeded"]


def test_pauses_grow_and_after_the_last_retry_the_run_fails() -> None:
    world = World()
    run_id = retried(world, 3)
    pauses = []
    for _ in range(3):
        lose(world, run_id)
        pauses.append(present(world.record(run_id).admission.waiting).not_before - world.clock.now())
        world.reconcile()
        assert going(world) == []
        next_job(world, run_id)
    assert pauses == [timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15)]
    lose(world, run_id)
    record = kept(world, run_id)
    assert (record.state, present(record.failure).code, len(record.problems)) == (RunState.FAILED, 13, 3)


def failed(text: str, code: int = 3) -> Failure:
    return Failure(code=code, message=text)


@pytest.mark.parametrize(
    ("scheduling", "error", "state"),
    [
        ({}, failed("The replica workerpool0-0 exited with a non-zero status of 1."), JobState.FAILED),
        (
            {"spot": True},
            failed("The replica workerpool0-0 exited with a non-zero status of 2.", 13),
            JobState.FAILED,
        ),
        ({}, PREEMPTED, JobState.FAILED),
        ({"retry_on": ["preemption"]}, INTERNAL, JobState.FAILED),
        ({"retry_on": ["infrastructure"]}, OUT_OF_MEMORY, JobState.FAILED),
        ({"spot": True}, failed("the image does not exist", 5), JobState.FAILED),
        ({"spot": True}, failed("took too long", 4), JobState.FAILED),
        ({}, INTERNAL, JobState.CANCELLED),
        ({}, INTERNAL, JobState.EXPIRED),
    ],
)
def test_an_end_that_is_no_loss_ends_the_run(scheduling: Any, error: Failure, state: JobState) -> None:
    world = World()
    run_id = retried(world, scheduling=scheduling)
    world.complete(world.hint(end_job(world, run_id, error, state)))
    record = kept(world, run_id)
    assert record.ended
    assert record.round == 0


def test_after_an_order_to_cancel_no_job_follows() -> None:
    world = World()
    run_id = retried(world)
    job = end_job(world, run_id, INTERNAL, JobState.RUNNING)
    order = json.dumps({"cancel": {"run": run_id}}).encode()
    world.jobs.cancel = lambda name: None  # type: ignore[method-assign]  # noqa: ARG005 - it ends by itself
    take(world.services(), world.drop(order, "requests/end.json"))
    world.complete(world.hint(world.jobs.become(job.name, JobState.FAILED, error=INTERNAL)))
    assert world.record(run_id).state is RunState.FAILED


def test_a_run_cancelled_before_its_retry_has_cost_what_its_job_did_whenever_the_process_dies() -> None:
    for call in range(40):
        world = priced_world()
        run_id = retried(world)
        lose(world, run_id)
        order = world.drop(json.dumps({"cancel": {"run": run_id}}).encode(), "requests/end.json")
        boundary = Boundary(die_at=call, die_after_the_call=True)
        try:
            take(world.services(boundary), order)
        except Killed:
            take(world.services(), order)
        else:
            assert call > len(boundary.calls) - 1
        world.reconcile_after(timedelta(minutes=2))
        record = kept(world, run_id)
        assert (record.state, len(world.jobs.all())) == (RunState.CANCELLED, 1)
        assert final_cost(record) == index_row_of(record, 1).cost == Decimal("1.8")
        assert world.active() == []


@pytest.mark.parametrize(
    ("error", "spot", "why", "machine"),
    [
        (PREEMPTED, True, "preemption", "n1-standard-4"),
        (failed("the machine was taken away", 9), True, "preemption", "n1-standard-4"),
        (
            failed("The replica workerpool0-0 exited with a non-zero status of 137."),
            True,
            "preemption",
            "n1-standard-4",
        ),
        (
            failed("The replica workerpool0-0 exited with a non-zero status of 137."),
            False,
            "out_of_memory",
            "n1-highmem-4",
        ),
        (OUT_OF_MEMORY, True, "out_of_memory", "n1-highmem-4"),
        (
            failed("Internal error occurred for the current attempt.", 2),
            False,
            "infrastructure",
            "n1-standard-4",
        ),
    ],
)
def test_the_next_job_is_on_a_larger_machine_only_after_a_lack_of_memory(
    error: Failure, spot: bool, why: str, machine: str
) -> None:
    world = World()
    run_id = retried(world, scheduling={"spot": spot})
    lose(world, run_id, error)
    record = next_job(world, run_id)
    assert record.submission.abandoned_jobs[0].why == why
    assert current_candidate(record).spec.cluster.chief.machine == machine


def test_two_lacks_of_memory_enlarge_the_machine_twice_and_its_price_follows() -> None:
    world = priced_world()
    run_id = retried(world, 1)
    assert present(present(world.record(run_id).request).estimate).at_most == Decimal("1.8") + Decimal("2.1")
    run_id = retried(world)
    machines, hourly = [], []
    for _ in range(2):
        lose(world, run_id, OUT_OF_MEMORY)
        record = next_job(world, run_id)
        machines.append(record.submission.machines)
        hourly.append(present(present(record.request).estimate).per_hour)
    assert machines == [
        {"n1-standard-4": "n1-standard-8"},
        {"n1-standard-4": "n1-standard-16", "n1-standard-8": "n1-standard-16"},
    ]
    assert hourly == [Decimal("2.1"), None], "the table has no price of the last"


def test_without_a_larger_machine_in_the_policy_a_lack_of_memory_ends_the_run() -> None:
    world = World()
    chief = {"machine": "n1-highmem-16", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}
    run_id = retried(world, cluster={"chief": chief})
    lose(world, run_id, OUT_OF_MEMORY)
    assert world.record(run_id).state is RunState.FAILED


def test_a_retry_is_announced_once_by_its_round() -> None:
    world = World()
    run_id = retried(world)
    job = lose(world, run_id)
    (notice,) = [each for each in world.notices.published if each.type == "trainmaster.run.retried.v1"]
    event: Any = cloud_event(notice, "//trainmaster/projects/p/locations/us-central1")
    NOTICE.validate(event)
    assert (event["id"], event["data"]["job_name"]) == (f"{run_id}/retried/1", job.name)
    assert (event["data"]["why"], event["data"]["reason"]) == ("infrastructure", INTERNAL.message)


def test_the_study_of_a_lost_tuning_is_begun_again() -> None:
    world = World()
    run_id = retried(world, tuning=TUNING)
    name = present(world.record(run_id).job).name
    trials = [Trial(id="1", state=TrialState.SUCCEEDED, start_time=world.clock.now())]
    world.jobs.become(name, JobState.RUNNING, trials=trials)
    world.reconcile()
    world.complete(world.hint(world.jobs.become(name, JobState.FAILED, error=INTERNAL)))
    record = next_job(world, run_id)
    assert (record.state, record.progress, record.round) == (RunState.SUBMITTED, None, 1)
    assert "repeats its finished trials" in record.problems[0]
    jobs = world.jobs.of_run(run_id, JobKind.TUNING, ("us-central1",))
    assert len(jobs) == 2
