"""What a job's machines did is on its record, and never in the way; jobs that waste them are reported, or cancelled."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.boundaries import dies_after, dies_before
from tests.contract.schemas import RECORD
from tests.contract.test_complete import launched
from tests.contract.world import LEDGER, REGION, REQUEST, Boundary, Killed, World, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.adapters.monitoring import CloudMachineMetrics
from trainmaster.orchestrator.core.completion.machine_metrics import MachineMetric, MetricQuery
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.notices.notice import RUN_WASTEFUL
from trainmaster.orchestrator.core.policy.waste import ThenDo, WastePolicy
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.runs.utilization import ReplicaUse, Use
from trainmaster.orchestrator.flows.lifecycle.finish import steps_done
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import FlowResult
from trainmaster.orchestrator.flows.waste import find_wasteful
from trainstack.http import in_thread, serving
from trainstack.monitoring.api import application
from trainstack.monitoring.samples import CPU, Point, Samples, SeriesKey

MINUTE, WINDOW = timedelta(minutes=1), timedelta(minutes=30)
DOWN = ServiceFailed("Cloud Monitoring", "list cpu/utilization", "it is down")
DENIED = AccessDenied("Cloud Monitoring", "list cpu/utilization", "monitoring.timeSeries.list")


def test_the_use_of_each_replica_is_recorded_once_its_last_sample_is_there() -> None:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    end, metrics = present(world.jobs.read(job.name).end_time), world.machine_metrics
    metrics.report(MachineMetric.CPU, job_id(job.name), 0.2, at=end - 5 * MINUTE)
    world.complete(world.hint(job))
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert set(steps_done(record)) >= {"notices", "slots", "status"}
    assert record.utilization is None
    assert world.active() == [incoming.run_id]
    metrics.report(MachineMetric.CPU, job_id(job.name), 0.4, 0.6, at=end)
    metrics.report(MachineMetric.GPU, job_id(job.name), 0.1, 0.3, at=end)
    metrics.report(MachineMetric.SENT, job_id(job.name), 100.0, 200.0, at=end)
    del metrics._reported[MachineMetric.CPU][0]
    world.reconcile_after(MINUTE)
    record = world.record(incoming.run_id)
    RECORD.validate(encoded(record))
    (use,) = present(record.utilization).replicas
    assert use == ReplicaUse(
        replica="workerpool0-0", cpu=Use(mean=0.5, max=0.6), gpu=Use(mean=0.2, max=0.3), sent_bytes=300
    )
    assert world.active() == []


@pytest.mark.parametrize(
    ("failure", "passes"), [(DOWN, 10), (None, 10), (DENIED, 0)], ids=["down", "empty", "denied"]
)
def test_a_service_that_shows_nothing_delays_no_other_step_and_is_given_up_silently(
    failure: Exception | None, passes: int
) -> None:
    world, incoming, job = launched()
    world.machine_metrics.report(MachineMetric.CPU, job_id(job.name), at=world.clock.now())
    world.machine_metrics.failure = failure
    world.train(world.record(incoming.run_id))
    boundary = Boundary()
    world.complete(world.hint(job), boundary)
    calls = boundary.calls
    assert calls.index("list time series") > max(n for n, name in enumerate(calls) if name == "publish")
    assert calls.count("list time series") == 1
    for number in range(passes):
        assert world.active() == [incoming.run_id]
        results = world.reconcile_after(MINUTE)
        assert bool(results) == (number == passes - 1), "nothing is logged while samples may come"
    record = world.record(incoming.run_id)
    assert world.active() == []
    assert (record.utilization, record.problems) == (None, ())


def test_one_failure_ends_the_reads_of_a_pass() -> None:
    world = World()
    for number in range(3):
        world.drop_and_launch(REQUEST + f"# {number}\n".encode(), f"requests/{number}.yaml")
        world.clock.advance(timedelta(hours=1))
    for job in world.jobs.all():
        world.jobs.become(job.name, JobState.SUCCEEDED)
    world.machine_metrics.failure = DOWN
    world.reconcile()
    assert len(world.machine_metrics.queries) == 1
    assert len(world.active()) == 3


def wasteful_world(**policy: Any) -> tuple[World, Job]:
    """A world with that policy, and a job that has run for an hour."""
    world = World(request_rules_with(waste=WastePolicy(**policy), regions=(REGION,)))
    world.drop_and_launch()
    (job,) = world.jobs.all()
    job = world.jobs.become(job.name, JobState.RUNNING)
    tick(world)
    world.clock.advance(timedelta(hours=1))
    return world, job


def tick(world: World, boundary: Boundary | None = None) -> list[FlowResult]:
    return list(take_tick(world.services(boundary)))


def wasteful_notices(world: World) -> Iterator[str]:
    return (notice.id for notice in world.notices.published if notice.type == RUN_WASTEFUL)


def idle(world: World, job: Job) -> None:
    world.machine_metrics.report(MachineMetric.GPU, job_id(job.name), 0.03, at=world.clock.now())


def test_an_idle_job_is_on_record_and_published_once() -> None:
    world, job = wasteful_world(min_gpu_percent=10.0)
    (run_id,) = world.active()
    tick(world)
    assert world.record(run_id).wasteful is None, "nothing is known of its GPUs"
    idle(world, job)
    for _ in range(2):
        tick(world)
    record = world.record(run_id)
    RECORD.validate(encoded(record))
    reason = "its GPUs were used 3 % in the last 30 minutes"
    assert present(record.wasteful).reason == reason
    assert record.problems == (f"the job wastes its machines: {reason}",)
    assert list(wasteful_notices(world)) == [f"{run_id}/wasteful"]
    assert record.cancel_requested_at is None


@pytest.mark.parametrize("percent", [3.0, 2.0])
def test_a_busy_or_a_young_job_is_left_alone(percent: float) -> None:
    world, job = wasteful_world(min_gpu_percent=percent, window_s=7200 if percent > 2 else 1800)
    idle(world, job)
    tick(world)
    assert not list(wasteful_notices(world))


def test_a_silent_job_is_found_by_one_read_for_all_and_one_that_logs_is_not() -> None:
    world, job = wasteful_world(silent_s=1800)
    world.drop_and_launch(name="requests/other.yaml")
    other = world.jobs.become(world.jobs.all()[1].name, JobState.RUNNING)
    tick(world)
    world.clock.advance(WINDOW)
    world.job_logs.write(job_id(other.name), "workerpool0-0", "still here")
    boundary = Boundary()
    tick(world, boundary)
    assert boundary.calls.count("find silent jobs") == 1
    assert [one.partition("/")[2] for one in wasteful_notices(world)] == ["wasteful"]
    (found,) = (world.record(run).wasteful for run in world.active() if world.record(run).wasteful)
    assert present(found).reason == "it has logged nothing for 1800 s"
    assert job.state is JobState.RUNNING


def test_without_the_policy_a_tick_reads_nothing() -> None:
    world = World()
    world.drop_and_launch()
    boundary = Boundary()
    tick(world, boundary)
    assert not {"find silent jobs", "list time series"} & set(boundary.calls)


def test_the_policy_may_cancel_the_job_and_the_record_says_why() -> None:
    world, job = wasteful_world(min_gpu_percent=10.0, then=ThenDo.CANCEL)
    (run_id,) = world.active()
    idle(world, job)
    tick(world)
    tick(world)
    record = world.record(run_id)
    assert record.state is RunState.CANCELLED
    assert "by the policy `waste`: its GPUs were used 3 %" in present(record.failure).message


@pytest.mark.parametrize("dies", [dies_before, dies_after])
@pytest.mark.parametrize("call", ["publish", "write runs", "write index", "write status", "cancel"])
def test_a_crash_at_any_write_leaves_one_notice_id_and_a_cancelled_run(call: str, dies: Any) -> None:
    world, job = wasteful_world(min_gpu_percent=10.0, then=ThenDo.CANCEL)
    (run_id,) = world.active()
    idle(world, job)
    with suppress(Killed):
        tick(world, dies(call))
    for _ in range(3):
        tick(world)
    record = world.record(run_id)
    assert record.state is RunState.CANCELLED
    assert set(wasteful_notices(world)) == {f"{run_id}/wasteful"}
    assert len(record.problems) == 1


def test_a_damaged_record_keeps_no_other_job_from_being_reported() -> None:
    world, job = wasteful_world(min_gpu_percent=10.0)
    world.drop_and_launch(name="requests/other.yaml")
    other = world.jobs.become(world.jobs.all()[1].name, JobState.RUNNING)
    tick(world)
    world.clock.advance(timedelta(hours=1))
    idle(world, job)
    idle(world, other)
    damaged, whole = (one.labels[RUN_LABEL] for one in (job, other))
    world.objects.write(LEDGER, f"runs/{damaged}.json", b"no record", if_generation=None)
    results = list(find_wasteful(world.services(), world.ledger.active()[0]))
    assert [result.run_id for result in results] == [whole]


def test_a_service_that_fails_is_named_and_the_other_reads_go_on() -> None:
    world, job = wasteful_world(min_gpu_percent=10.0, silent_s=1800)
    world.machine_metrics.failure = DOWN
    results = tick(world)
    warnings = [result.message for result in results if result.severity == "WARNING"]
    assert any("were not looked for: Cloud Monitoring" in message for message in warnings)
    assert len(list(wasteful_notices(world))) == 1
    assert job.state is JobState.RUNNING


def test_the_adapter_reads_series_pages_and_denials_of_the_stack() -> None:
    now = World().clock.now()
    samples = Samples(2.0)
    for number in range(300):
        at = now.timestamp() - 2 * number
        samples.add(SeriesKey(CPU, "7", "workerpool0-0"), Point(at, 2.0, 0.25))
    query = MetricQuery(metric=MachineMetric.CPU, since=now - WINDOW, until=now, job_id="7")
    with in_thread(lambda: serving(application(samples))) as url:
        metrics = CloudMachineMetrics(project="p", endpoint=url)
        (series,) = metrics.list_time_series(query)
        assert (series.replica, series.mean, len(series.points)) == ("workerpool0-0", 0.25, 300)
        (of_all,) = metrics.list_time_series(replace(query, job_id=None))
        assert (of_all.job_id, of_all.replica, of_all.mean) == ("7", "", 0.25)
        assert metrics.list_time_series(replace(query, metric=MachineMetric.GPU)) == []
        long = replace(query, since=now - timedelta(days=1))
        assert len(metrics.list_time_series(long)[0].points) <= 60
    with pytest.raises(ServiceFailed, match="Cloud Monitoring could not list cpu/utilization"):
        metrics.list_time_series(query)
