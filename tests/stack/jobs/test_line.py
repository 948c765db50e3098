"""The line of jobs that wait for room, with a log that takes its time as the stack's own does."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.stack.waiting import in_time
from trainstack.jobs.capacity import Capacity, Supply
from trainstack.jobs.collection import SCHEMA, JobStore, ServiceContext
from trainstack.jobs.images.environments import Environments
from trainstack.jobs.images.programs import Provided
from trainstack.jobs.replicas.isolation import ReplicaHost
from trainstack.jobs.replicas.processes import Processes
from trainstack.jobs.resource.job import ResourceState, VertexJob
from trainstack.jobs.runners import log as lines
from trainstack.jobs.runners.custom_job import CustomJobRunner
from trainstack.jobs.runners.log import JobLog
from trainstack.jobs.service import JobService
from trainstack.process.processes import ProcessGuard
from trainstack.sqlite import Database, DiskFullError

Entry = dict[str, Any]


@dataclass(kw_only=True)
class Log:
    """Awaits a few turns of the event loop for each batch, and for `held` jobs until they are let go."""

    written: list[tuple[str, str]] = field(default_factory=list)
    held: dict[str, asyncio.Event] = field(default_factory=dict)

    async def write(self, entries: list[Entry]) -> None:
        for entry in entries:
            job_id = entry["resource"]["labels"].get("job_id", "")
            for _ in range(5):
                await asyncio.sleep(0)
            if job_id in self.held:
                await self.held[job_id].wait()
            self.written.append((job_id, entry.get("textPayload", "")))

    def order_of(self, text: str) -> list[str]:
        return [job_id for job_id, written in self.written if written == text]


@dataclass(kw_only=True)
class Line:
    """A JobService with one place. No image is provided: a job that has its place fails there and then."""

    store: JobStore[VertexJob]
    machine: ReplicaHost
    log: Log = field(default_factory=Log)
    capacity: Capacity = field(default_factory=lambda: Capacity(1))

    def service(self) -> JobService:
        shared = ServiceContext(project="p1", write_log=self.log.write, supply=Supply())
        return JobService(self.store, shared, machine=self.machine, capacity=self.capacity)

    def run(self, job: VertexJob, save: Callable[[VertexJob], None] | None = None) -> CustomJobRunner:
        return CustomJobRunner(
            job,
            machine=self.machine,
            capacity=self.capacity,
            supply=Supply(),
            save=save or self.store.put,
            log=JobLog(self.log.write, project_id="p1", job_id=job.job_id),
        )

    async def ended(self, service: JobService, *jobs: VertexJob) -> list[VertexJob]:
        for job in jobs:
            if run := service._runners.get(job.job_id):
                await run.wait()
        return [found for job in jobs if (found := service.find(job.job_id)) and found.announced]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with closing(ProcessGuard(grace_s=0.1)) as guard:
        machine = ReplicaHost(
            guard=guard,
            provided=Provided(images=dict),
            environments=Environments(tmp_path / "environments", guard),
            scratch=tmp_path,
            grace_s=0.1,
            processes=Processes(buckets=tmp_path, private=False),
        )
        database = Database(tmp_path / "jobs.sqlite", SCHEMA)
        yield Line(store=JobStore(database, VertexJob), machine=machine)
        database.close()


def body(**scheduling: Any) -> dict[str, Any]:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": "us-docker.pkg.dev/p1/repo/none:latest"},
    }
    return {"displayName": "a job", "jobSpec": {"workerPoolSpecs": [pool], "scheduling": scheduling}}


def job(number: int, state: ResourceState, **scheduling: Any) -> VertexJob:
    return VertexJob.parse(
        body(**scheduling),
        project="1",
        location="us-central1",
        job_id=str(10**18 + number),
        at=datetime.now(UTC),
        state=state,
    )


def create(service: JobService, *bodies: dict[str, Any]) -> list[VertexJob]:
    return [service.create("1", "us-central1", body) for body in bodies]


@in_time
async def test_jobs_without_room_queue_in_the_order_in_which_they_came(line: Line) -> None:
    service = line.service()
    jobs = create(service, *[body()] * 4)
    assert [job.state for job in jobs] == [ResourceState.PENDING] + [ResourceState.QUEUED] * 3
    await line.ended(service, *jobs)
    assert line.log.order_of(lines.PROVISIONING) == [job.job_id for job in jobs]
    assert line.capacity.has_room_for(1)


@in_time
async def test_a_flexible_start_without_room_fails_after_its_longest_wait(line: Line) -> None:
    service = line.service()
    first, late = create(service, body(), body(strategy="FLEX_START", maxWaitDuration="0.1s"))
    line.log.held[first.job_id] = asyncio.Event()
    (ended,) = await line.ended(service, late)
    assert (ended.state, ended.message.error.code) == (ResourceState.FAILED, 8)
    line.log.held[first.job_id].set()
    await line.ended(service, first)
    assert line.capacity.has_room_for(1)


@in_time
async def test_a_job_that_ran_when_the_stack_ended_precedes_those_that_waited(line: Line) -> None:
    running, queued = job(1, ResourceState.RUNNING), job(2, ResourceState.QUEUED)
    line.store.put(running)
    line.store.put(queued)
    service = line.service()
    service.resume()
    await line.ended(service, running, queued)
    assert line.log.order_of(lines.PROVISIONING) == [running.job_id, queued.job_id]


@pytest.mark.parametrize(
    ("left", "state", "error"),
    [
        (
            job(1, ResourceState.RUNNING, disableRetries=True),
            ResourceState.FAILED,
            (13, "Internal error occurred", "its disableRetries forbids a second attempt"),
        ),
        (
            replace(job(1, ResourceState.RUNNING), attempts=3),
            ResourceState.FAILED,
            (13, "The local stack was killed or crashed during each of its 3 attempts."),
        ),
        (job(1, ResourceState.CANCELLING), ResourceState.CANCELLED, (1,)),
        (job(1, ResourceState.SUCCEEDED), ResourceState.SUCCEEDED, (0,)),
    ],
    ids=["not to be retried", "retried too often", "being cancelled", "ended without its last line"],
)
@in_time
async def test_a_job_that_the_next_stack_only_ends_leaves_its_room_to_others(
    line: Line, left: VertexJob, state: ResourceState, error: tuple[Any, ...]
) -> None:
    queued = job(2, ResourceState.QUEUED)
    line.store.put(left)
    line.store.put(queued)
    service = line.service()
    service.resume()
    ended, _ = await line.ended(service, left, queued)
    assert (ended.state, ended.message.error.code) == (state, error[0])
    assert all(words in ended.message.error.message for words in error[1:])
    assert line.log.order_of(lines.PROVISIONING) == [queued.job_id]
    assert line.capacity.has_room_for(1)


@in_time
async def test_a_job_that_has_ended_does_not_keep_its_room_while_its_last_line_is_written(line: Line) -> None:
    ended, queued = job(1, ResourceState.SUCCEEDED), job(2, ResourceState.QUEUED)
    line.store.put(ended)
    line.store.put(queued)
    service = line.service()
    line.log.held[ended.job_id] = asyncio.Event()
    service.resume()
    await line.ended(service, queued)
    line.log.held[ended.job_id].set()
    await line.ended(service, ended)


@in_time
async def test_a_job_that_is_cancelled_in_the_line_leaves_it(line: Line) -> None:
    service = line.service()
    taken = line.capacity.line_up(1)
    first, second = create(service, body(), body())
    service.cancel("projects/1/locations/us-central1", first.job_id)
    (ended,) = await line.ended(service, first)
    assert ended.state is ResourceState.CANCELLED
    line.capacity.release(taken)
    await line.ended(service, second)
    assert line.capacity.has_room_for(1)


@pytest.mark.parametrize("turns", range(0, 40, 8))
@pytest.mark.parametrize("has_room", [True, False])
@in_time
async def test_a_job_that_is_abandoned_gives_its_turn_back_wherever_it_stands(
    line: Line, turns: int, has_room: bool
) -> None:
    other = line.capacity.line_up(0 if has_room else 1)
    run, over = line.run(job(1, ResourceState.RUNNING)), asyncio.Event()
    run.start(on_end=over.set)
    for _ in range(turns):
        await asyncio.sleep(0)
    await run.abandon()
    await over.wait()
    line.capacity.release(other)
    assert line.capacity.has_room_for(1)


@in_time
async def test_a_service_that_stops_starts_none_of_those_who_waited(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that have room one ends at once, and the other one uses its grace."""
    line.capacity = Capacity(2)
    service, grace = line.service(), asyncio.Event()
    quick, slow, waiting = create(service, *[body()] * 3)
    abandon = service._runners[slow.job_id].abandon

    async def abandon_late() -> None:
        await grace.wait()
        await abandon()

    monkeypatch.setattr(service._runners[slow.job_id], "abandon", abandon_late)
    for _ in range(20):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(service.stop())
    for _ in range(100):
        await asyncio.sleep(0)
    grace.set()
    await stopping
    assert line.log.order_of(lines.WAITING)[:2] == [quick.job_id, slow.job_id]
    found = service.find(waiting.job_id)
    assert found is not None
    assert found.state is ResourceState.QUEUED


@in_time
async def test_a_run_that_breaks_gives_its_turn_back(line: Line) -> None:
    def save(job: VertexJob) -> None:
        if job.state is ResourceState.PENDING:
            raise OSError("the disk is full")

    run, over = line.run(job(1, ResourceState.QUEUED), save), asyncio.Event()
    run.start(on_end=over.set)
    await over.wait()
    assert run.job.state is ResourceState.FAILED
    assert line.capacity.has_room_for(1)


class CrowdedStore(JobStore[VertexJob]):
    """Has no room for what is put there while it is `full`."""

    full = False

    def put(self, job: VertexJob) -> None:
        if self.full:
            raise DiskFullError(Path("jobs.sqlite"))
        super().put(job)


@in_time
async def test_the_end_of_a_job_on_a_full_disk_is_shown_at_once_and_saved_when_the_service_stops(
    line: Line, tmp_path: Path
) -> None:
    database = Database(tmp_path / "crowded.sqlite", SCHEMA)
    store = line.store = CrowdedStore(database, VertexJob)
    service = line.service()
    (job,) = create(service, body())
    store.full = True
    (ended,) = await line.ended(service, job)
    assert ended.state is ResourceState.FAILED
    assert [saved.state for saved in store.jobs()] == [ResourceState.PENDING]
    store.full = False
    await service.stop()
    saved = JobStore(database, VertexJob)
    assert [(job.state, job.announced) for job in saved.jobs()] == [(ResourceState.FAILED, True)]
    database.close()


def test_a_large_job_at_the_head_is_not_overtaken_until_it_leaves() -> None:
    capacity = Capacity(2)
    running, large, small = (capacity.line_up(count) for count in (1, 2, 1))
    assert [turn.came.is_set() for turn in (running, large, small)] == [True, False, False]
    capacity.release(large)
    assert small.came.is_set()
    assert not large.came.is_set()
    capacity.release(small)
    capacity.release(small)
    assert capacity.has_room_for(1)
    assert not capacity.has_room_for(2)
