"""Entries about a job cost a few reads, however many an account that may write logs invents."""

import pytest

from tests.contract.world import PROJECT, REGION, Boundary, World
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.events.self_test import MarkedEntry
from trainmaster.orchestrator.core.job_names import JobKind, location_name
from trainmaster.orchestrator.core.names import DEPLOYMENT_LABEL, job_mark_object
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import answer_entry
from trainmaster.orchestrator.flows.process_memory import PER_JOB, PER_JOB_EVERY

FLOOD = 600


def running_run(world: World, name: str) -> str:
    """The id of a run whose job runs."""
    incoming = world.drop_and_launch(name=f"requests/{name}.yaml")
    job = present(world.record(incoming.run_id).job)
    world.jobs.become(job.name, JobState.RUNNING)
    return incoming.run_id


def own_hint(world: World, run_id: str, *, tells_end: bool = True) -> JobHint:
    job = present(world.record(run_id).job)
    return world.hint(world.jobs.read(job.name), tells_end=tells_end)


@pytest.mark.parametrize("tells_end", [True, False])
def test_a_flood_about_one_job_costs_its_allowance_of_reads(world: World, tells_end: bool) -> None:
    run_id = running_run(world, "noisy")
    hint, boundary = own_hint(world, run_id, tells_end=tells_end), Boundary()
    for _ in range(FLOOD):
        world.complete(hint, boundary)
    assert boundary.calls.count("read job") == PER_JOB
    assert len(boundary.calls) <= PER_JOB * 8


def test_a_flood_about_one_job_leaves_the_ends_of_others_prompt(world: World) -> None:
    noisy, honest = running_run(world, "noisy"), running_run(world, "honest")
    for _ in range(FLOOD):
        world.complete(own_hint(world, noisy))
    world.train(world.record(honest))
    world.complete(own_hint(world, honest))
    assert world.record(honest).state is RunState.SUCCEEDED


def test_an_entry_about_a_job_that_was_not_submitted_here_costs_one_read_of_the_ledger_and_is_not_warned_of(
    world: World,
) -> None:
    """Such as those of another deployment in the project, which its sink delivers too."""
    run_id = running_run(world, "honest")
    own = present(world.record(run_id).job)
    foreign = world.jobs.submit(
        Submission(
            run_id=run_id,
            parent=location_name(PROJECT, REGION),
            kind=JobKind.CUSTOM,
            body={
                "displayName": run_id,
                "labels": {**world.jobs.read(own.name).labels, DEPLOYMENT_LABEL: "stage"},
                "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://other-models/m/r"}},
            },
        )
    )
    world.jobs.become(foreign.name, JobState.SUCCEEDED)
    before, boundary = world.record(run_id), Boundary()
    for _ in range(FLOOD):
        assert world.complete(world.hint(world.jobs.read(foreign.name)), boundary).severity == "DEBUG"
    assert boundary.calls == ["read ledger"] * PER_JOB
    assert world.record(run_id) == before
    world.train(before)
    world.complete(own_hint(world, run_id))
    assert world.record(run_id).state is RunState.SUCCEEDED


def test_a_job_without_its_mark_ends_with_the_next_tick(world: World) -> None:
    run_id = running_run(world, "honest")
    hint = own_hint(world, run_id)
    world.objects.delete("ledger", job_mark_object(hint.job_id))
    world.train(world.record(run_id))
    world.complete(hint)
    assert world.record(run_id).state is RunState.SUBMITTED
    world.reconcile()
    assert world.record(run_id).state is RunState.SUCCEEDED


def test_an_end_that_the_allowance_passes_over_is_found_by_the_next_tick(world: World) -> None:
    run_id = running_run(world, "noisy")
    world.train(world.record(run_id))
    hint = own_hint(world, run_id)
    while world.hint_reads.spend(hint.job_id):
        pass
    boundary = Boundary()
    world.complete(hint, boundary)
    assert boundary.calls == []
    world.reconcile()
    assert world.record(run_id).state is RunState.SUCCEEDED


def test_the_allowance_grows_back(world: World) -> None:
    run_id = running_run(world, "noisy")
    for _ in range(FLOOD):
        world.complete(own_hint(world, run_id, tells_end=False))
    world.clock.advance(PER_JOB_EVERY)
    boundary = Boundary()
    for _ in range(FLOOD):
        world.complete(own_hint(world, run_id, tells_end=False), boundary)
    assert boundary.calls.count("read job") == 1


def test_an_entry_whose_reading_failed_is_redelivered_and_read_again_however_often(world: World) -> None:
    run_id = running_run(world, "honest")
    hint = own_hint(world, run_id, tells_end=False)

    def unavailable(place: str) -> BaseException:
        return ServiceFailed("Vertex AI", "read the job", place)

    for _ in range(100):
        with pytest.raises(ServiceFailed):
            world.complete(hint, Boundary(die_at=0, death=unavailable))
    world.complete(hint)
    assert world.record(run_id).state is RunState.RUNNING


def test_a_flood_of_self_tests_is_answered_as_often_as_a_job_is_read(world: World) -> None:
    boundary = Boundary()
    for number in range(FLOOD):
        marked = MarkedEntry(self_test_id=f"{number:032x}", written_at=world.clock.now())
        answer_entry(world.services(boundary), marked)
    assert boundary.calls.count("write self-test") == PER_JOB
