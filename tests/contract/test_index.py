"""The index of runs: one row each, the newest first, never older than what was shown before."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from tests.contract.boundaries import At
from tests.contract.index import index_rows, index_violations
from tests.contract.world import LEDGER, Boundary, Crossing, Killed, World
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.runs.index import INDEX_PREFIX, IndexRow
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.lifecycle.status import show

T = TypeVar("T")
LABELLED = b"""
model_name: flowers
labels: {team: agronomy}
priority: 70
cluster:
  chief: {machine: n1-standard-8, image: us-docker.pkg.dev/my-project/training/flowers:1, accelerator: {type: NVIDIA_TESLA_T4, count: 1}}
"""


def rows(world: World) -> list[IndexRow]:
    return index_rows(world.objects)


def mismatches(world: World, *run_ids: str) -> list[str]:
    return list(index_violations(world, [world.record(run_id) for run_id in run_ids]))


def test_a_listing_shows_the_newest_run_first_and_reads_no_record(world: World) -> None:
    names = ["requests/b.yaml", "requests/a.yaml", "requests/c.yaml"]
    for name in names:
        world.launch(world.drop(name=name))
        world.clock.advance(timedelta(milliseconds=1))
    boundary = Boundary()
    found = [row.run_id[0] for row in index_rows(Crossing(world.objects, boundary))]
    assert found == ["c", "a", "b"]
    assert boundary.calls == ["list ledger"]


def test_the_row_shows_the_request_and_the_job(world: World) -> None:
    incoming = world.drop_and_launch(LABELLED)
    (row,) = rows(world)
    (job,) = world.jobs.all()
    assert row.state is RunState.SUBMITTED
    assert (row.source, row.model_name, row.priority, row.labels) == (
        "upload",
        "flowers",
        70,
        {"team": "agronomy"},
    )
    assert (row.job_kind, row.job_id) == (JobKind.CUSTOM, job.name.rpartition("/")[2])
    assert (row.region, row.machines) == ("us-central1", "n1-standard-8 with 1 NVIDIA_TESLA_T4")
    assert row.created_at == world.record(incoming.run_id).history[0].at


def test_a_rejected_run_has_a_row_with_its_first_fault(world: World) -> None:
    incoming = world.drop_and_launch(b"model_name: Bad Name\nimgae: x\n")
    (row,) = rows(world)
    assert (row.state, row.model_name) == (RunState.REJECTED, None)
    assert row.reason == world.record(incoming.run_id).problems[0]
    assert row.ended_at == world.record(incoming.run_id).history[0].at


def test_the_row_follows_the_run_to_its_end(world: World) -> None:
    incoming = world.drop_and_launch()
    (job,) = world.jobs.all()
    world.jobs.become(job.name, JobState.RUNNING)
    world.complete(world.hint(job, tells_end=False))
    assert [row.state for row in rows(world)] == [RunState.RUNNING]
    world.clock.advance(timedelta(minutes=5))
    ended = world.train(world.record(incoming.run_id))
    world.complete(world.hint(job))
    (row,) = rows(world)
    assert (row.state, row.ended_at) == (RunState.SUCCEEDED, ended.end_time)
    assert mismatches(world, incoming.run_id) == []


def test_a_late_writer_does_not_bring_an_older_state_back(world: World) -> None:
    incoming = world.drop_and_launch()
    earlier = world.ledger.present(incoming.run_id)
    world.train(earlier.record)
    world.reconcile()
    show(world.services(), earlier)
    assert [row.state for row in rows(world)] == [RunState.SUCCEEDED]


def test_a_run_whose_submission_takes_long_is_listed_by_the_next_tick(world: World) -> None:
    seen: list[RunState] = []

    def tick() -> None:
        world.reconcile()
        seen.extend(row.state for row in rows(world))

    incoming = world.drop()
    world.launch(incoming, At("submit", before=tick))
    assert seen == [RunState.RESERVED]
    assert [row.state for row in rows(world)] == [RunState.SUBMITTED]
    assert mismatches(world, incoming.run_id) == []


def test_a_row_with_damaged_content_is_written_over(world: World) -> None:
    incoming = world.drop_and_launch()
    (listed,) = world.objects.listing(LEDGER, INDEX_PREFIX)
    world.objects.write(LEDGER, listed.name, b"\xff" * 30, if_generation=None)
    assert rows(world) == []
    world.train(world.record(incoming.run_id))
    world.reconcile()
    assert mismatches(world, incoming.run_id) == []


class RowFailsAndNothingFollowsTheStatus(Boundary):
    """Nothing on record says that the row is missing."""

    def cross(self, name: str, call: Callable[[], T]) -> T:
        if name == "write index":
            raise ServiceFailed("Cloud Storage", "write", "503")
        if name == "publish":
            raise Killed
        return super().cross(name, call)


def test_a_row_that_failed_is_written_later_although_the_status_shows_the_end(world: World) -> None:
    incoming = world.drop_and_launch()
    (job,) = world.jobs.all()
    world.jobs.become(job.name, JobState.SUCCEEDED)
    with pytest.raises(Killed):
        world.complete(world.hint(job), RowFailsAndNothingFollowsTheStatus())
    (status,) = [each.name for each in world.objects.listing(LEDGER, "status/")]
    assert world.document(status)["state"] == "succeeded"
    assert [row.state for row in rows(world)] == [RunState.SUBMITTED]
    world.reconcile_after(timedelta(hours=1))
    assert mismatches(world, incoming.run_id) == []
    assert [row.state for row in rows(world)] == [RunState.SUCCEEDED]
