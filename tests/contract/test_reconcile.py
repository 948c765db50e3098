"""The reconciler has a time limit, and every active run gets its turn."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest

from tests.contract.boundaries import At, only_at, raising
from tests.contract.data_stream import MeteredObjects
from tests.contract.test_tuning import trial
from tests.contract.watched import MINUTE, REGIONS, watched
from tests.contract.world import ELSEWHERE, LEDGER, REGION, REQUEST, Boundary, World
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.flows.lifecycle.follow_up import VANISHED_AGE
from trainmaster.orchestrator.flows.listed_jobs import TUNINGS_READ
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.attempts import Traces

Answer = TypeVar("Answer")


def slow_reads(world: World, what: str = "read job") -> Boundary:
    """Reading a job, or what else is named, takes a quarter of a minute."""
    return At(what, before=lambda: world.clock.advance(timedelta(seconds=15)))


def launched(world: World, runs: int) -> list[str]:
    """The runs, a second apart; their names fall while their ages rise."""
    made = []
    for number in range(runs):
        incoming = world.drop_and_launch(name=f"requests/{chr(ord('z') - number)}.yaml")
        world.clock.advance(timedelta(seconds=1))
        made.append(incoming.run_id)
    return made


def ended(world: World, runs: list[str]) -> list[bool]:
    return [world.record(run_id).state is RunState.SUCCEEDED for run_id in runs]


def test_a_reconcile_pass_without_time_for_all_takes_the_oldest_and_says_how_many_are_left() -> None:
    world = World()
    runs = launched(world, 6)
    for run_id in runs:
        world.train(world.record(run_id))
    told = world.reconcile(slow_reads(world))  # a minute, of a quarter of a minute each
    assert ended(world, runs) == [True, True, True, True, False, False]
    assert told[-1].message == "out of time with 2 of 6 active runs left; the next pass continues with them"
    assert told[-1].severity == "WARNING"
    world.reconcile(slow_reads(world))
    assert all(ended(world, runs))
    assert world.active() == []


def test_runs_that_keep_running_block_no_other(world: World) -> None:
    runs = launched(world, 7)
    world.train(world.record(runs[-1]))
    world.reconcile(slow_reads(world, f"read {LEDGER}"))
    assert ended(world, runs)[-1] is False
    world.reconcile(slow_reads(world, f"read {LEDGER}"))
    assert ended(world, runs)[-1] is True


def test_a_complete_reconcile_pass_is_followed_by_one_from_the_oldest_run(world: World) -> None:
    runs = launched(world, 6)
    world.reconcile(slow_reads(world, f"read {LEDGER}"))
    world.reconcile()
    assert world.services().attempts.read() == Traces()
    world.train(world.record(runs[0]))
    assert world.reconcile()[0].run_id == runs[0]


def test_a_place_that_cannot_be_read_costs_no_run_its_turn(world: World) -> None:
    runs = launched(world, 3)
    odd = {"runs": "zzz", "attempts": "many"}
    for name in ("ticks/places", "ticks/attempts/runs/odd"):
        world.objects.write(LEDGER, name, b"", if_generation=None, metadata=odd)
    for run_id in runs:
        world.train(world.record(run_id))
    world.reconcile()
    assert all(ended(world, runs))


def test_a_reconcile_pass_costs_the_same_operations_however_many_runs_have_ended() -> None:
    def cost(finished: int) -> dict[tuple[str, str], int]:
        world = World()
        objects = MeteredObjects(world.clock)
        world.objects = objects
        launched(world, 3)
        for number in range(finished):
            objects.write(LEDGER, f"runs/finished-{number}.json", b"{}", if_generation=0)
        objects.meter.operations.clear()
        world.reconcile()
        return dict(objects.meter.operations)

    assert cost(0) == cost(5000)
    assert cost(0)["list", "active"] == 1


def test_a_report_beside_a_run_that_another_attempt_accepted_is_removed(world: World) -> None:
    """One attempt finds the file gone; another had read it before."""
    dropped = world.drop()  # its event has no checksum: the file counts as overwritten with something else
    incoming = world.uploaded("requests/cassava.yaml", dropped.source.generation or 0, len(REQUEST))

    class GoneAtTheRead(Boundary):
        def cross(self, name: str, call: Callable[[], Answer]) -> Answer:
            if name == "write active":
                world.launch(incoming)
            if name != "read inbox":
                return super().cross(name, call)
            content = world.objects.read("inbox", "requests/cassava.yaml", max_bytes=MIB).content
            world.objects.delete("inbox", "requests/cassava.yaml")
            try:
                return super().cross(name, call)
            finally:
                restored(content)

    def restored(content: bytes) -> None:
        # The same generation as before: the other attempt had read it already.
        world.objects._generation = (incoming.source.generation or 0) - 1
        world.objects.write("inbox", "requests/cassava.yaml", content, if_generation=None)
        world.objects._generation += 100

    world.launch(incoming, GoneAtTheRead())
    assert world.record(incoming.run_id).state is RunState.SUBMITTED
    names = [listed.name for listed in world.objects.listing(LEDGER, "rejected/")]
    assert names == []


def states_in(world: World, region: str) -> set[str]:
    jobs = (job for job in world.jobs.all() if job_region(job.name) == region)
    return {world.record(job.labels[RUN_LABEL]).state for job in jobs}


@pytest.mark.slow
@pytest.mark.parametrize(("custom", "tunings"), [(600, 0), (500, 100)])
def test_watching_600_runs_costs_at_most_ten_calls_of_the_service_a_minute(custom: int, tunings: int) -> None:
    world, jobs = watched(custom, tunings)
    world.reconcile_after(MINUTE)
    assert jobs.calls.total() <= 10
    assert states_in(world, REGION) == {"running"}
    ended, deleted = jobs.all()[:2]
    world.train_job(ended)
    jobs.remove(deleted.name)
    jobs.calls.clear()
    world.reconcile_after(VANISHED_AGE)
    assert [world.record(job.labels[RUN_LABEL]).state for job in (ended, deleted)] == ["succeeded", "failed"]
    assert jobs.calls.total() <= 12, "one more for each job that is no longer active"


def test_tunings_take_turns_to_have_their_trials_read() -> None:
    world, jobs = watched(0, tunings=20)
    for job in jobs.all():
        jobs.become(job.name, JobState.RUNNING, trials=[trial(1, 0.5)])
    for _ in range(3):  # four of ten in each region at a time
        jobs.calls.clear()
        world.reconcile_after(MINUTE)
        assert all(jobs.calls[region, "get"] <= TUNINGS_READ for region in REGIONS)
    shown = [present(world.record(job.labels[RUN_LABEL]).progress).trials for job in jobs.all()]
    assert shown == [{"SUCCEEDED": 1}] * 20


def test_a_region_that_cannot_be_listed_costs_one_call_and_no_other_region_a_run() -> None:
    world, jobs = watched(6)
    for job in jobs.all():
        world.train_job(job)
    jobs.calls.clear()
    failure = ServiceFailed("Vertex AI", "list the active customJobs in us-central1", "503")
    results = world.reconcile(At("list jobs", before=only_at(1, raising(failure))))
    assert (states_in(world, REGION), states_in(world, ELSEWHERE)) == ({"running"}, {"succeeded"})
    assert jobs.calls[REGION, "get"] == 0
    told = [result.message for result in results if result.event is LogEvent.RUN_NOT_RECONCILED]
    assert told == [f"not reconciled: {failure}"] * 3
    world.reconcile()
    assert states_in(world, REGION) == {"succeeded"}


def test_a_cancellation_that_was_lost_is_repeated_for_a_listed_job() -> None:
    world, jobs = watched(1)
    (job,) = jobs.all()
    held = present(world.ledger.find(job.labels[RUN_LABEL]))
    world.ledger.replace(held, replace(held.record, cancel_requested_at=world.clock.now()))
    world.reconcile()
    assert jobs.read(job.name).state is JobState.CANCELLED
    world.reconcile()
    assert states_in(world, REGION) == {"cancelled"}
