"""A function that was paused between its lease and its submission wakes up: its second job is cancelled."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, nothing, raising
from tests.contract.rooms import NO_CAPACITY, Answering, full, places, stopped_before_submitting
from tests.contract.schemas import RECORD
from tests.contract.world import LEASE, Boundary, Killed, World, labelled
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import (
    RecordMoved,
    ServiceFailed,
    SubmissionRefused,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.states import END_OF, RunState


def taken_over_meanwhile(
    world: World, incoming: IncomingDocument, then: Callable[[], object] = nothing
) -> Boundary:
    """The process pauses before its submission until another has taken the run over, and then continues."""

    def meanwhile() -> None:
        world.clock.advance(LEASE)
        world.launch(incoming)

    return At("submit", before=meanwhile, after=then)


def one_job_stays(world: World, incoming: IncomingDocument) -> None:
    record = world.record(incoming.run_id)
    RECORD.validate(encoded(record))
    assert [job.name for job in world.jobs.going()] == [present(record.job).name]
    (second,) = (job for job in world.jobs.all() if job.state in END_OF)
    assert [second.name in problem for problem in record.problems] == [True]
    assert record.problems[0].startswith("a second job was found")


@pytest.mark.parametrize(
    ("then", "severity"),
    [(nothing, "WARNING"), (raising(SubmissionUnknown("the answer never came")), "INFO")],
    ids=["answered", "answer lost"],
)
def test_a_process_that_wakes_cancels_its_own_job(
    world: World, then: Callable[[], object], severity: str
) -> None:
    incoming = world.drop()
    result = world.launch(incoming, taken_over_meanwhile(world, incoming, then))
    assert result.severity == severity
    assert len(world.jobs.all()) == 2
    one_job_stays(world, incoming)
    assert world.document("status/requests/cassava.yaml.json")["state"] == "submitted"


def test_the_job_of_a_process_that_wakes_and_dies_is_found_by_the_next_pass_and_searched_for_once_more(
    world: World,
) -> None:
    incoming = world.drop()
    with pytest.raises(Killed):
        world.launch(incoming, taken_over_meanwhile(world, incoming, raising(Killed("after it woke"))))
    assert len(world.jobs.going()) == 2
    world.reconcile()
    one_job_stays(world, incoming)
    world.reconcile_after(LEASE)
    one_job_stays(world, incoming)
    later = Boundary()
    world.reconcile(later)
    assert "find jobs" not in later.calls


def taken_over() -> tuple[World, IncomingDocument, Callable[[], Job]]:
    """A run that another process took over from a paused one, and a function that wakes the paused one."""
    world = World()
    incoming = world.drop()
    wake = stopped_before_submitting(world, incoming)
    world.clock.advance(LEASE)
    world.launch(incoming)
    return world, incoming, wake


def test_a_job_submitted_before_the_other_process_records_its_own_is_found_by_that_process() -> None:
    """It found no job on record and changed nothing; the other lists the jobs after it has written the record."""
    world = World()
    incoming = world.drop()
    wake = stopped_before_submitting(world, incoming)
    world.clock.advance(LEASE)
    world.launch(incoming, At("submit", before=wake))
    assert len(world.jobs.all()) == 2
    one_job_stays(world, incoming)


def test_a_late_second_job_is_found_by_the_list_of_the_next_pass() -> None:
    world, incoming, wake = taken_over()
    world.reconcile_after(10 * LEASE)
    second = wake()
    world.reconcile()
    one_job_stays(world, incoming)
    before, boundary = world.record(incoming.run_id), Boundary()
    world.complete(world.hint(second, tells_end=False))
    world.reconcile(boundary)
    assert world.record(incoming.run_id) == before
    assert "find jobs" not in boundary.calls


def test_a_second_job_is_found_before_the_runs_end_is_on_record() -> None:
    world, incoming, wake = taken_over()
    wake()
    job = world.train(world.record(incoming.run_id))
    world.complete(world.hint(job))
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert world.jobs.going() == []
    assert "a second job was found" in record.problems[0]
    RECORD.validate(encoded(record))


def test_a_process_that_wakes_while_its_run_waits_leaves_its_job_to_the_next_process(world: World) -> None:
    incoming = world.drop()

    def no_room() -> None:
        world.clock.advance(LEASE)
        world.launch(incoming, jobs=Answering(world, full()))
        assert world.record(incoming.run_id).state is RunState.WAITING

    with pytest.raises(RecordMoved):
        world.launch(incoming, At("submit", before=no_room))
    world.reconcile_after(timedelta(minutes=1))
    (job,) = world.jobs.going()
    record = world.record(incoming.run_id)
    assert (record.state, present(record.job).name, record.problems) == (RunState.SUBMITTED, job.name, ())
    assert places(world) == []


def test_a_second_job_that_was_cancelled_never_becomes_the_runs_own() -> None:
    """The run's job finds no capacity afterwards, and the run looks for another."""
    world, incoming, wake = taken_over()
    (own,) = world.jobs.all()
    second = wake()
    world.complete(world.hint(second, tells_end=False))
    told = world.jobs.become(own.name, JobState.FAILED, error=NO_CAPACITY, ran=False)
    world.complete(world.hint(told, insert_id="another"))
    world.complete(world.hint(world.jobs.read(second.name)))
    for _ in range(3):
        world.reconcile_after(timedelta(minutes=2))
    record = world.record(incoming.run_id)
    assert present(record.job).name not in (own.name, second.name)
    assert record.state is RunState.SUBMITTED


@pytest.mark.parametrize("shown", [True, False], ids=["shown at once", "shown late"])
def test_a_second_job_of_a_run_that_ends_without_one_is_found(world: World, *, shown: bool) -> None:
    """It finds no end on record yet; the process that records the end looks for its job, and so does the reconciler."""
    incoming = world.drop()
    wake = stopped_before_submitting(world, incoming)
    world.clock.advance(LEASE)
    shows, second = world.jobs.of_run, list[Job]()

    def woken() -> None:
        second.append(wake())
        if not shown:
            world.jobs.of_run = lambda *_: ()  # type: ignore[method-assign]  # the listing is late

    refusing = Answering(world, SubmissionRefused(400, "no such machine"))
    world.launch(incoming, At("submit", before=woken), refusing)
    assert world.record(incoming.run_id).state is RunState.FAILED
    assert (world.jobs.going() == []) is shown
    world.jobs.of_run = shows  # type: ignore[method-assign]
    assert world.active() == [incoming.run_id], "the reconciler must look once more"
    world.reconcile_after(LEASE)
    assert world.jobs.going() == []
    record = world.record(incoming.run_id)
    RECORD.validate(encoded(record))
    assert record.problems == (
        f"a second job was found, {second[0].name}: it is being cancelled; the run has none",
    )
    assert (world.active(), record.submission.second_job_check_at) == ([], None)


def test_a_process_that_wakes_after_its_run_ended_without_a_job_cancels_its_own_job(world: World) -> None:
    incoming = world.drop()

    def refused() -> None:
        world.clock.advance(LEASE)
        world.launch(incoming, jobs=Answering(world, SubmissionRefused(400, "no such machine")))

    world.launch(incoming, At("submit", before=refused))
    assert [job.state for job in world.jobs.all()] == [JobState.CANCELLED]
    record = world.record(incoming.run_id)
    assert record.state is RunState.FAILED
    assert "a second job was found" in record.problems[0]


def test_a_late_check_cancels_no_job_that_the_run_got_meanwhile() -> None:
    """It has read a failed job; by the time it looks for second jobs, the run has replaced that one."""
    world, incoming, _ = taken_over()
    (failed,) = world.jobs.all()
    world.jobs.become(failed.name, JobState.FAILED, ran=False)

    def meanwhile() -> None:
        told = world.jobs.become(failed.name, JobState.FAILED, error=NO_CAPACITY, ran=False)
        world.complete(world.hint(told, insert_id="another"))
        world.reconcile_after(timedelta(minutes=2))

    world.complete(world.hint(failed), At("find jobs", before=meanwhile))
    record = world.record(incoming.run_id)
    assert (record.state, record.round, record.problems) == (RunState.SUBMITTED, 1, ())
    assert [job.name for job in world.jobs.going()] == [present(record.job).name]


def test_of_two_jobs_and_none_on_record_the_oldest_is_adopted(world: World) -> None:
    incoming = world.drop()
    wake = stopped_before_submitting(world, incoming)
    first = wake()
    world.clock.advance(timedelta(seconds=1))
    wake()
    world.clock.advance(LEASE)
    world.launch(incoming)
    one_job_stays(world, incoming)
    record = world.record(incoming.run_id)
    assert present(record.job).name == first.name


def test_a_job_that_only_bears_the_label_is_left_alone(world: World) -> None:
    incoming = world.drop()
    wake = stopped_before_submitting(world, incoming)
    mine = wake()
    stranger = world.jobs.submit(labelled(incoming.run_id))
    world.clock.advance(LEASE)
    world.launch(incoming)
    world.complete(world.hint(stranger, tells_end=False))
    assert {job.name for job in world.jobs.going()} == {mine.name, stranger.name}


def test_a_cancellation_that_fails_is_tried_again_by_the_next_reconcile_pass() -> None:
    world, incoming, wake = taken_over()
    wake()
    world.clock.advance(LEASE)
    world.reconcile(At("cancel", before=raising(ServiceFailed("Vertex AI", "cancel", "it is down"))))
    assert len(world.jobs.going()) == 2
    world.reconcile()
    one_job_stays(world, incoming)
