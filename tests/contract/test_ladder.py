"""A run whose job finds no capacity, or that is refused for want of room, walks its ladder and is told of in rounds."""

import json
from datetime import timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.core.codec import decoded, encoded
from orchestrator.core.errors import (
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
    TrainmasterError,
)
from orchestrator.core.launch.event import Arrival
from orchestrator.core.launch.submission import Submission
from orchestrator.core.names import job_region
from orchestrator.core.run import Job, JobState, Problem, RunRecord, RunState
from orchestrator.core.waiting import PAUSE_MOST_S, WAIT_IN_ALL
from tests.contract.retraining import SMALL
from tests.contract.world import ELSEWHERE, LEASE, REGION, Boundary, Killed, World, schema, standards_with

RECORD = Draft202012Validator(schema("run_record.v1"))
STATUS = Draft202012Validator(schema("drop_status.v1"))
TWO_REGIONS = standards_with()
LADDER: dict[str, Any] = {
    **SMALL,
    "fallbacks": [
        {"cluster": {"chief": {"machine": "n1-standard-8"}}},
        {"region": ELSEWHERE},
    ],
}
NO_CAPACITY = Problem(
    code=8, message=f"Resources are insufficient in region: {REGION}. Please try a different region."
)
FULL = SubmissionDeferred(
    429,
    "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus",
)
TOO_FAST = SubmissionDeferred(
    429, "Quota exceeded for requests per minute per region of aiplatform.googleapis.com"
)


class Refusing:
    """A JobService that answers the first submissions with errors, and keeps what it was sent."""

    def __init__(self, world: World, *answers: TrainmasterError) -> None:
        self.world = world
        self.answers = list(answers)
        self.sent: list[Submission] = []
        submit = world.jobs.submit

        def answered(submission: Submission) -> Job:
            self.sent.append(submission)
            if self.answers:
                raise self.answers.pop(0)
            return submit(submission)

        world.jobs.submit = answered  # type: ignore[method-assign]  # this service's own way to answer

    @property
    def machines(self) -> list[str]:
        bodies: list[Any] = [each.body for each in self.sent]
        return [body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["machineType"] for body in bodies]

    @property
    def regions(self) -> list[str]:
        return [each.parent.rpartition("/")[2] for each in self.sent]


def drop(world: World, document: object = LADDER, name: str = "a") -> Arrival:
    return world.drop(json.dumps(document).encode(), f"requests/{name}.json")


def stock_out(world: World, record: RunRecord, problem: Problem = NO_CAPACITY) -> Job:
    """The run's job ends for want of capacity, and its log says so."""
    assert record.job is not None
    world.clock.advance(timedelta(seconds=30))
    return world.jobs.become(record.job.name, JobState.FAILED, error=problem, ran=False)


def kept(world: World, run_id: str) -> RunRecord:
    """The record, which fits its schema and comes back as it was."""
    record = world.record(run_id)
    RECORD.validate(encoded(record))
    assert decoded(RunRecord, encoded(record)) == record
    return record


def ids_of(world: World, run_id: str) -> list[str]:
    ids = dict.fromkeys(notice.id.removeprefix(f"{run_id}/") for notice in world.notices.published)
    return list(ids)


@pytest.mark.parametrize(
    "problem",
    [
        NO_CAPACITY,
        Problem(code=8, message="words of some other kind"),
        Problem(code=14, message="The zone does not answer."),
        Problem(code=13, message="ZONE_RESOURCE_POOL_EXHAUSTED: try a different zone"),
        Problem(code=9, message="The following quota metrics exceed quota limits: nvidia_t4_gpus"),
    ],
    ids=lambda problem: problem.message[:20],
)
def test_a_job_without_capacity_ends_no_run_and_the_next_rung_is_taken(problem: Problem) -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    sent = Refusing(world)
    world.launch(arrival)
    first = stock_out(world, world.record(arrival.run_id), problem)
    world.settle(world.hint(first))
    world.sweep()
    record = kept(world, arrival.run_id)
    assert record.state is RunState.SUBMITTED
    assert (record.rung, record.round) == (1, 1)
    assert record.given_up[0].job == first.name
    assert [one.rung for one in record.tries] == [0]
    assert sent.machines == ["n1-standard-4", "n1-standard-8"]
    assert record.job is not None
    assert record.job.name != first.name


def test_a_job_that_ran_ends_its_run_whatever_its_words_are() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    record = world.record(arrival.run_id)
    assert record.job is not None
    world.jobs.become(record.job.name, JobState.RUNNING)
    world.settle(world.hint(world.jobs.become(record.job.name, JobState.FAILED, error=NO_CAPACITY)))
    assert world.record(arrival.run_id).state is RunState.FAILED


def test_a_job_that_never_ran_and_failed_for_another_reason_ends_its_run() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    job = stock_out(world, world.record(arrival.run_id), Problem(code=3, message="The image does not exist."))
    world.settle(world.hint(job))
    assert world.record(arrival.run_id).state is RunState.FAILED


def test_a_fallback_in_another_region_is_submitted_read_and_settled_there() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    sent = Refusing(world, FULL, FULL)
    world.launch(arrival)
    record = kept(world, arrival.run_id)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    assert record.job is not None
    assert (record.rung, job_region(record.job.name)) == (2, ELSEWHERE)
    assert [one.rung for one in record.tries] == [0, 1]
    assert "quota metrics" in record.tries[0].outcome
    world.settle(world.hint(world.train(record)))
    assert world.record(arrival.run_id).state is RunState.SUCCEEDED


def test_after_the_last_rung_the_first_is_due_again_after_a_pause() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    sent = Refusing(world, FULL, FULL, FULL)
    world.launch(arrival)
    record = kept(world, arrival.run_id)
    assert (record.state, record.rung) == (RunState.WAITING, 0)
    assert record.waiting is not None
    assert record.waiting.not_before > world.clock.now()
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert world.record(arrival.run_id).state is RunState.SUBMITTED
    assert sent.machines[-1] == "n1-standard-4"


def test_stockouts_of_every_rung_come_to_a_pause_before_the_first_again() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    sent = Refusing(world)
    world.launch(arrival)
    for _ in range(3):
        world.settle(world.hint(stock_out(world, world.record(arrival.run_id))))
        world.sweep()
    record = kept(world, arrival.run_id)
    assert (record.state, record.rung, record.round) == (RunState.WAITING, 0, 3)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert world.record(arrival.run_id).state is RunState.SUBMITTED


def test_what_users_are_told_goes_forward_by_rounds() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    old = stock_out(world, world.record(arrival.run_id))
    world.settle(world.hint(old))
    status = world.document("status/requests/a.json.json")
    STATUS.validate(status)
    assert (status["state"], status["round"]) in (("waiting", 1), ("submitted", 1))
    world.sweep()
    world.settle(world.hint(world.train(world.record(arrival.run_id))))
    assert world.document("status/requests/a.json.json")["state"] == "succeeded"
    assert ids_of(world, arrival.run_id) == [
        "reserved",
        "submitted",
        "waiting",
        "submitted/2",
        "running",
        "succeeded",
    ]


def test_late_entries_of_a_job_that_was_given_up_change_nothing() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    old = stock_out(world, world.record(arrival.run_id))
    world.settle(world.hint(old))
    world.sweep()
    before = world.record(arrival.run_id)
    world.settle(world.hint(old, insert_id="again"))
    assert world.record(arrival.run_id) == before
    assert all(not problem.startswith("a second job") for problem in before.problems)


def test_a_job_that_was_given_up_is_never_adopted() -> None:
    """The process dies after the refusal is on record; whoever takes over finds only the old job."""
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    old = stock_out(world, world.record(arrival.run_id))
    world.settle(world.hint(old))
    if world.record(arrival.run_id).state is RunState.WAITING:
        calls = Boundary()
        world.sweep(calls)
    record = world.record(arrival.run_id)
    assert record.job is not None
    assert record.job.name != old.name
    assert len(world.jobs.all()) == 2


def test_a_rung_is_on_record_before_it_is_submitted() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    seen: list[int] = []

    class Looking(Boundary):
        def cross(self, name: str, call: Any) -> Any:
            if name == "submit":
                seen.append(world.record(arrival.run_id).rung)
            return super().cross(name, call)

    Refusing(world, FULL, FULL)
    world.launch(arrival, Looking())
    assert seen == [0, 1, 2]


def test_a_job_of_another_rung_is_found_where_it_was_submitted() -> None:
    """Killed after the submission of the last rung: the job lies in another region."""
    world = World(TWO_REGIONS)
    arrival = drop(world)

    class Dies(Boundary):
        def cross(self, name: str, call: Any) -> Any:
            answer = super().cross(name, call)
            if name == "submit":
                raise Killed("after the job was created")
            return answer

    Refusing(world, FULL, FULL)
    with pytest.raises(Killed):
        world.launch(arrival, Dies())
    world.clock.advance(LEASE)
    world.sweep()
    (job,) = world.jobs.all()
    record = kept(world, arrival.run_id)
    assert record.job is not None
    assert (record.job.name, job_region(job.name)) == (job.name, ELSEWHERE)


def test_a_service_that_is_asked_too_fast_is_asked_for_the_same_rung_after_a_moment() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    sent = Refusing(world, TOO_FAST)
    world.launch(arrival)
    record = kept(world, arrival.run_id)
    assert (record.state, record.rung) == (RunState.WAITING, 0)
    assert record.waiting is not None
    assert record.waiting.too_fast
    assert timedelta(0) < record.waiting.not_before - world.clock.now() <= timedelta(seconds=PAUSE_MOST_S)
    world.clock.advance(timedelta(seconds=PAUSE_MOST_S + 1))
    world.sweep()
    assert sent.machines == ["n1-standard-4", "n1-standard-4"]
    assert world.record(arrival.run_id).state is RunState.SUBMITTED


def test_a_rung_that_is_refused_for_good_leaves_the_others() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    sent = Refusing(world, FULL, SubmissionRefused(400, "no such machine"))
    world.launch(arrival)
    assert sent.regions == [REGION, REGION, ELSEWHERE]
    record = kept(world, arrival.run_id)
    assert record.state is RunState.SUBMITTED
    assert "no such machine" in record.tries[1].outcome


def test_a_run_whose_every_rung_is_refused_for_good_fails() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    Refusing(world, *[SubmissionRefused(400, "no such machine")] * 3)
    world.launch(arrival)
    record = kept(world, arrival.run_id)
    assert record.state is RunState.FAILED
    assert record.error is not None
    assert "no such machine" in record.error.message


def test_a_run_that_found_no_capacity_for_a_week_fails_with_the_services_words() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    world.settle(world.hint(stock_out(world, world.record(arrival.run_id))))
    world.sweep()
    assert kept(world, arrival.run_id).state is RunState.SUBMITTED
    world.clock.advance(WAIT_IN_ALL)
    job = stock_out(world, world.record(arrival.run_id))
    world.settle(world.hint(job))
    record = kept(world, arrival.run_id)
    assert record.state is RunState.FAILED
    assert record.error is not None
    assert "insufficient" in record.error.message


def test_a_stockout_told_before_its_submission_is_on_record_leaves_the_lease_and_one_job() -> None:
    """The job's end comes while whoever submitted it has not written it down yet."""
    world = World(TWO_REGIONS)
    arrival = drop(world)

    class Meanwhile(Boundary):
        def cross(self, name: str, call: Any) -> Any:
            answer = super().cross(name, call)
            if name == "submit":
                (job,) = world.jobs.all()
                world.settle(
                    world.hint(world.jobs.become(job.name, JobState.FAILED, error=NO_CAPACITY, ran=False))
                )
                world.sweep()
            return answer

    happened = world.launch(arrival, Meanwhile())
    assert happened.run_id == arrival.run_id
    record = kept(world, arrival.run_id)
    assert (record.state, record.round) == (RunState.WAITING, 1)
    assert len(world.jobs.all()) == 1
    world.clock.advance(LEASE)
    world.sweep()
    assert world.record(arrival.run_id).state is RunState.SUBMITTED
    assert len(world.jobs.all()) == 2


def test_an_old_record_without_any_of_it_is_read() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    document = world.document(f"runs/{arrival.run_id}.json")
    for key in ("priority", "rung", "slots", "tries", "given_up"):
        document.pop(key, None)
    record = decoded(RunRecord, document)
    assert (record.priority, record.rung, record.given_up, record.tries) == (50, 0, (), ())


def test_an_answer_that_was_lost_on_a_later_rung_is_looked_for_there() -> None:
    world = World(TWO_REGIONS)
    arrival = drop(world)
    submit = world.jobs.submit
    answers: list[TrainmasterError | None] = [FULL, None]

    def lost(submission: Submission) -> Job:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        submit(submission)
        raise SubmissionUnknown("cut")

    world.jobs.submit = lost  # type: ignore[method-assign]  # as above
    world.launch(arrival)
    record = kept(world, arrival.run_id)
    assert (record.state, record.rung) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 1


def test_a_late_settlement_of_the_old_job_does_not_give_the_new_one_up() -> None:
    """One instance stands still before it writes the stockout down; another writes it and submits meanwhile."""
    world = World(TWO_REGIONS)
    arrival = drop(world)
    world.launch(arrival)
    old = stock_out(world, world.record(arrival.run_id))

    class Meanwhile(Boundary):
        def cross(self, name: str, call: Any) -> Any:
            if name == "write runs" and name not in self.calls:
                self.calls.append(name)
                world.settle(world.hint(old, insert_id="another"))
            return super().cross(name, call)

    world.settle(world.hint(old), Meanwhile())
    record = kept(world, arrival.run_id)
    assert (record.state, record.round) == (RunState.SUBMITTED, 1)
    assert len(world.jobs.all()) == 2
