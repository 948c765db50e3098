"""What a replica takes of its machine, over REST: sampled from /proc, selected, aligned, in pages, and bounded."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.judges.surfaces import gaps
from tests.narrowing import present
from tests.stack.jobs.conftest import Stack, container, processes_with, run_stack
from trainstack.http import in_thread, serving
from trainstack.monitoring import Monitoring, usage
from trainstack.monitoring.api import SURFACE, application
from trainstack.monitoring.meter import Meter, fractions_of
from trainstack.monitoring.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    JOBS_MAX,
    MEMORY,
    POINTS_MAX,
    Point,
    Samples,
    SeriesKey,
)
from trainstack.monitoring.usage import machine_size
from trainstack.process.family import stat_of
from trainstack.sandbox.probe import obstacle

PATH = "/v3/projects/p1/timeSeries"
START = 1_790_000_000
VCPUS = 4
"""Of n1-standard-4, which `container` asks for."""


@dataclass(frozen=True)
class Read:
    url: str

    def answer(self, metric: str = CPU, **more: Any) -> httpx.Response:
        asked = {
            "filter": f'metric.type = "{metric}"',
            "interval.startTime": "2020-01-01T00:00:00Z",
            "interval.endTime": "2037-01-01T00:00:00Z",
            "view": "FULL",
            **{name.replace("__", "."): value for name, value in more.items()},
        }
        return httpx.get(self.url + PATH, params=asked, trust_env=False, timeout=60)

    def series(self, metric: str = CPU, **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.answer(metric, **more).json().get("timeSeries", [])
        return found

    def by_task(self, metric: str = CPU) -> Mapping[str, list[float]]:
        return {
            one["resource"]["labels"]["task_name"]: [point["value"]["doubleValue"] for point in one["points"]]
            for one in self.series(metric)
        }


@pytest.fixture
def samples() -> Samples:
    return Samples(2.0)


@pytest.fixture
def read(samples: Samples) -> Iterator[Read]:
    app: Starlette = application(samples)
    with in_thread(lambda: serving(app)) as url:
        yield Read(url)


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[tuple[Stack, Read]]:
    monitoring = Monitoring()
    ways = {"isolation": "none" if obstacle() else "enforced"}
    with (
        in_thread(lambda: serving(monitoring)) as url,
        run_stack(tmp_path, meter=monitoring.meter, **ways) as stack,  # type: ignore[arg-type]  # by a name
    ):
        yield stack, Read(url)


def test_the_table_has_every_parameter_of_the_method_that_is_served() -> None:
    assert gaps(SURFACE, "monitoring.v3") == []


def test_the_samples_of_two_replicas_agree_with_ps_within_a_tenth(metered: tuple[Stack, Read]) -> None:
    stack, read = metered
    seconds = 7.03125  # in no other test's argument
    busy = container(f"burn={seconds}@workerpool0-0")
    job = stack.submit(busy, container(f"sleep={seconds + 1}@workerpool1-0"))
    of_ps: list[tuple[float, float]] = []
    while not (ended := stack.jobs.get_custom_job(name=job.name).end_time):
        for pid in processes_with(f"burn={seconds}@workerpool0-0"):
            command = ["ps", "-o", "pcpu=,rss=", "-p", str(pid)]
            with suppress(ValueError):  # it has just ended
                cpu, rss = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
                of_ps.append((float(cpu) / 100, float(rss) * 1024))
        time.sleep(0.1)
    assert ended is not None
    found, memory = read.by_task(), read.by_task(MEMORY)
    assert found.keys() == {"workerpool0-0", "workerpool1-0"}
    assert fmean(found["workerpool0-0"]) * VCPUS == pytest.approx(of_ps[-1][0], rel=0.1)
    assert max(found["workerpool1-0"]) < min(found["workerpool0-0"])
    assert max(memory["workerpool0-0"]) >= of_ps[-1][1] / machine_size("n1-standard-4").memory_bytes
    assert not read.series(GPU)
    stack.ended(job.name)
    stack.jobs.delete_custom_job(name=job.name).result()
    assert not read.series()


def test_the_shortest_replica_has_a_sample_of_all_that_it_used(metered: tuple[Stack, Read]) -> None:
    stack, read = metered
    stack.ended(stack.submit(container("burn=0.3")).name)
    (values,) = read.by_task().values()
    assert 0 < fmean(values) * VCPUS <= 1


def fill(
    samples: Samples, count: int, job: str = "7", task: str = "workerpool0-0", value: float = 0.5
) -> None:
    for number in range(count):
        samples.add(SeriesKey(CPU, job, task), Point(START + 2.0 * (number + 1), 2.0, value))


def test_series_are_selected_by_job_and_interval_newest_first(samples: Samples, read: Read) -> None:
    fill(samples, 5)
    fill(samples, 5, job="8")
    both = (
        f'metric.type = "{CPU}" AND resource.type="cloudml_job" AND resource.labels.job_id = one_of("8", "9")'
    )
    (one,) = read.series(filter=both, interval__startTime=START + 4, interval__endTime=START + 8) or [{}]
    assert not one  # times are RFC 3339, and these are refused
    (one,) = read.series(filter=both, interval__endTime="2026-09-21T14:13:28Z")
    assert one["resource"] == {
        "type": "cloudml_job",
        "labels": {"project_id": "p1", "job_id": "8", "task_name": "workerpool0-0"},
    }
    times = [point["interval"]["endTime"] for point in one["points"]]
    assert times == sorted(times, reverse=True)
    assert read.answer(GPU).json() == {}


def test_pages_count_points_and_a_series_may_continue_on_the_next(samples: Samples, read: Read) -> None:
    fill(samples, 3)
    fill(samples, 3, task="workerpool1-0")
    points, token = [], ""
    while True:
        answer = read.answer(pageSize=2, pageToken=token).json()
        page = [one["points"] for one in answer["timeSeries"]]
        assert sum(map(len, page)) == 2
        points += [point for each in page for point in each]
        if not (token := answer.get("nextPageToken", "")):
            break
    assert len(points) == 6


def test_series_are_aligned_and_reduced_by_job(samples: Samples, read: Read) -> None:
    fill(samples, 10, value=0.2)
    fill(samples, 10, task="workerpool1-0", value=0.4)
    fill(samples, 10, job="8", value=1.0)
    found = read.series(
        aggregation__alignmentPeriod="86400s",
        aggregation__perSeriesAligner="ALIGN_MEAN",
        aggregation__crossSeriesReducer="REDUCE_MEAN",
        aggregation__groupByFields="resource.labels.job_id",
    )
    means = {one["resource"]["labels"]["job_id"]: one["points"][0]["value"]["doubleValue"] for one in found}
    assert means == {"7": pytest.approx(0.3), "8": 1.0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"filter": ""}, "the local stack takes terms of metric.type"),
        ({"filter": 'metric.type = "a" OR metric.type = "b"'}, "joined by AND; found"),
        ({"filter": 'resource.type = "cloudml_job"'}, "exactly one metric.type"),
        ({"interval__endTime": "now"}, "interval.endTime: expected an RFC 3339"),
        ({"interval__startTime": "2038-01-01T00:00:00Z"}, "after the end time"),
        ({"aggregation__perSeriesAligner": "ALIGN_MEAN"}, "alignmentPeriod: at least 60s"),
        ({"aggregation__perSeriesAligner": "ALIGN_RATE"}, "ALIGN_RATE is not imitated"),
        ({"aggregation__crossSeriesReducer": "REDUCE_MEAN"}, "perSeriesAligner: required"),
        ({"pageToken": "x"}, "pageToken"),
        ({"orderBy": "x"}, "orderBy is not imitated"),
    ],
)
def test_what_the_service_refuses_or_the_stack_does_not_imitate(
    read: Read, given: Mapping[str, str], words: str
) -> None:
    answer = read.answer(**given)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def nvml_of(users: Mapping[int, list[SimpleNamespace]]) -> SimpleNamespace:
    """A library of the same functions as nvidia-ml-py, on a machine with GPUs that have these users."""
    return SimpleNamespace(
        NVMLError=OSError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(users),
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetComputeRunningProcesses=users.__getitem__,
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(used=20, total=80),
        nvmlDeviceGetUtilizationRates=lambda number: SimpleNamespace(gpu=40 if users[number] else 0),
    )


def test_gpus_are_those_that_a_replicas_processes_use(
    samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = nvml_of({0: [SimpleNamespace(pid=os.getpid())], 1: []})
    monkeypatch.setattr(usage, "_loaded_nvml", lambda: nvml)
    found = usage.usage_of([os.getpid()])[os.getpid()]
    assert found.gpus == {0: (0.4, 0.25)}
    of_two = fractions_of(machine_size("n1-standard-4", 2), found)
    assert [of_two[GPU, "0"], of_two[GPU, "1"], of_two[GPU_MEMORY, "0"]] == [0.4, 0.0, 0.25]


def test_an_orphan_counts_to_the_session_that_it_is_in() -> None:
    """Its parent is the machine's first process, where no sandbox has another first process."""
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    script = f"({sys.executable} -S -c '{program}' &); exec sleep 60"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as root:
        assert root.stdout is not None
        try:
            orphan = present(stat_of(int(root.stdout.readline())))
            assert usage.usage_of([root.pid])[root.pid].memory_bytes >= orphan.memory_bytes > 2**20
        finally:
            os.killpg(root.pid, signal.SIGKILL)


@dataclass(eq=False)
class Ending:
    """The part of a child that a meter reads."""

    pid: int = 7
    ended_at: float | None = None
    cpu_s: float | None = None


@pytest.fixture
def meter() -> Meter:
    """With samples of which no two join, however short."""
    return Meter(Samples(-1.0))


def sampled(meter: Meter, monkeypatch: pytest.MonkeyPatch, cpu_s: float) -> list[bool]:
    """Whether each point of the processor's use is above 0, after one more sample with that time."""
    monkeypatch.setattr(
        "trainstack.monitoring.meter.usage_of", lambda _: {7: usage.Usage(cpu_s=cpu_s, memory_bytes=1)}
    )
    meter.sample()
    (points,) = meter.samples.of_metric(CPU).values()
    return [point.value > 0 for point in points]


def test_processor_time_that_ends_with_its_process_hides_no_later_one(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter.watch(Ending(), job_id="7", task="workerpool0-0", size=machine_size("n1-standard-4"))  # type: ignore[arg-type]
    found = [sampled(meter, monkeypatch, cpu_s) for cpu_s in (50.0, 1.0, 1.5)]
    assert found[-1] == [True, False, True]


def test_a_process_that_has_the_id_of_an_ended_one_is_not_sampled(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = Ending()
    meter.watch(child, job_id="7", task="workerpool0-0", size=machine_size("n1-standard-4"))  # type: ignore[arg-type]
    assert len(sampled(meter, monkeypatch, 1.0)) == 1
    child.ended_at = time.monotonic()
    assert len(sampled(meter, monkeypatch, 100.0)) == 1


@pytest.mark.parametrize(
    ("users", "rate"),
    [([os.getpid()], None), ([2**22 + 1], 40), ([], 40)],
    ids=["it cannot be read", "its user is in another namespace", "its user is not shown"],
)
def test_the_use_of_gpus_is_unknown_where_none_can_say_who_uses_one(
    users: Sequence[int], rate: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rates(number: int) -> SimpleNamespace:
        if number == 1 and rate is None:
            raise OSError("not supported")
        return SimpleNamespace(gpu=rate or 0)

    nvml = nvml_of({0: [SimpleNamespace(pid=os.getpid())], 1: [SimpleNamespace(pid=pid) for pid in users]})
    nvml.nvmlDeviceGetUtilizationRates = rates
    monkeypatch.setattr(usage, "_loaded_nvml", lambda: nvml)
    found = usage.usage_of([os.getpid()])[os.getpid()]
    assert not fractions_of(machine_size("n1-standard-4", 2), found).keys() & {(GPU, "0"), (GPU, "1")}


def test_an_unknown_metric_is_not_found(read: Read) -> None:
    assert read.answer("custom.googleapis.com/a").status_code == 404


def test_samples_are_bounded_by_replica_and_by_jobs(samples: Samples) -> None:
    fill(samples, 20 * POINTS_MAX)
    (points,) = samples.of_metric(CPU).values()
    spans = {point.span_s for point in points[:-1]}
    assert len(points) <= POINTS_MAX
    assert len(spans) == 1  # so that the mean of the points is the mean of the time
    for number in range(JOBS_MAX):
        fill(samples, 1, job=f"job {number}")
    assert "7" not in {key.job_id for key in samples.of_metric(CPU)}
