"""Entries about a job cost a few reads, however many an account that may write logs invents."""

from dataclasses import replace

import pytest

from tests.contract.world import Boundary, World
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.events.self_test import MarkedEntry
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import answer_entry
from trainmaster.orchestrator.flows.process_memory import OF_STRANGERS, PER_JOB, PER_JOB_EVERY

FLOOD = 10 * OF_STRANGERS


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


def test_entries_about_invented_jobs_share_one_allowance_and_leave_known_jobs_theirs(world: World) -> None:
    run_id = running_run(world, "honest")
    world.complete(own_hint(world, run_id, tells_end=False))
    boundary, hint = Boundary(), own_hint(world, run_id)
    for number in range(FLOOD):
        world.complete(replace(hint, job_id=f"9{number:06}"), boundary)
    assert boundary.calls == ["read job"] * OF_STRANGERS
    world.train(world.record(run_id))
    world.complete(hint)
    assert world.record(run_id).state is RunState.SUCCEEDED


def test_an_end_that_the_allowance_passes_over_is_found_by_the_next_tick(world: World) -> None:
    run_id = running_run(world, "noisy")
    world.train(world.record(run_id))
    hint = own_hint(world, run_id)
    world.hint_reads.mark_known(hint.job_id)
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


def test_a_flood_of_self_tests_is_answered_as_often_as_unknown_jobs_are_read(world: World) -> None:
    boundary = Boundary()
    for number in range(FLOOD):
        marked = MarkedEntry(self_test_id=f"{number:032x}", written_at=world.clock.now())
        answer_entry(world.services(boundary), marked)
    assert boundary.calls.count("write self-test") == OF_STRANGERS
