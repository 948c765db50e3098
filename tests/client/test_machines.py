"""What a user sees of a running job's machines: sparklines by replica, a line with the reason, or nothing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.cli.runs.records import run_of
from tests.client.served import run_record
from trainmaster.client.clients import Clients
from trainmaster.client.context import Context, context_in_cloud
from trainmaster.client.shown.machine_lines import REPLICAS_SHOWN, now_facts, now_lines, sparkline
from trainmaster.client.watch.machines import MachinesNow, MachinesWatch, read_machines
from trainmaster.orchestrator.core.completion.machine_metrics import (
    MAX_PAGE_BYTES,
    MachineMetric,
    MetricQuery,
    list_series,
)
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainstack.http import in_thread, serving
from trainstack.monitoring.api import application
from trainstack.monitoring.samples import CPU, GPU, Point, Samples, SeriesKey

NOW = datetime(2026, 3, 1, 12, 6, tzinfo=UTC)
Reading = Callable[[Starlette], MachinesNow]


def active() -> RunRecord:
    document = run_record("succeeded")
    history = document["history"][:3]
    return run_of(document | {"state": "running", "history": history, "utilization": None}).record


@pytest.fixture
def reading() -> Reading:
    def read(app: Starlette) -> MachinesNow:
        with in_thread(lambda: serving(app)) as url, Clients(context(url)) as clients:
            watch = MachinesWatch(clients)
            assert watch.look(active(), NOW) == read_machines(clients, active(), NOW)
            return watch.look(active(), NOW + timedelta(hours=1))  # it is not read again so soon

    return read


def context(url: str) -> Context:
    return replace(context_in_cloud("p", "us-central1"), monitoring_host=url, logging_host=url)


def sampled() -> Samples:
    samples, job = Samples(2.0), active().job
    assert job is not None
    for number in range(120):
        at, share = NOW.timestamp() - 2 * (119 - number), number / 119
        for task in ("workerpool0-0", "workerpool1-0"):
            samples.add(SeriesKey(CPU, job.name.rpartition("/")[2], task), Point(at, 2.0, share))
        for gpu in ("0", "1"):
            key = SeriesKey(GPU, job.name.rpartition("/")[2], "workerpool0-0", gpu)
            samples.add(key, Point(at, 2.0, 0.5 * int(gpu)))
    return samples


def test_each_replica_has_a_sparkline_of_at_most_sixty_points(reading: Reading) -> None:
    machines = reading(application(sampled()))
    assert {name: len(of[MachineMetric.CPU]) for name, of in machines.replicas.items()} == {
        "workerpool0-0": 60,
        "workerpool1-0": 60,
    }
    lines = now_lines(machines)
    assert lines[0] == "workerpool0-0  CPU ▁▁▁▂▂▃▃▃▄▄▅▅▆▆▆▇▇███ 100 %  GPU ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃ 25 %"
    many = {f"workerpool1-{number}": {MachineMetric.CPU: [1.0]} for number in range(20)}
    assert now_lines(MachinesNow(replicas=many))[REPLICAS_SHOWN:] == ["and 12 more replicas"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (403, ["not shown: you lack monitoring.timeSeries.list, for example by roles/monitoring.viewer"]),
        (404, []),
        (200, []),
        (500, ["not shown: Cloud Monitoring does not answer: HTTPError"]),
    ],
)
def test_a_read_that_shows_nothing_says_why_if_it_was_refused(
    reading: Reading, status: int, shown: list[str]
) -> None:
    async def answer(_request: Request) -> JSONResponse:
        return JSONResponse({}, status_code=status)

    machines = reading(Starlette(routes=[Route("/{rest:path}", answer)]))
    assert [line for _, lines in now_facts(machines) for line in lines] == shown


def test_a_page_that_is_too_large_is_not_read(reading: Reading) -> None:
    async def answer(_request: Request) -> Response:
        return Response(b'{"timeSeries": []}' + b" " * MAX_PAGE_BYTES)

    machines = reading(Starlette(routes=[Route("/{rest:path}", answer)]))
    assert machines.why == "Cloud Monitoring does not answer: ValueError"


def test_a_sparkline_stays_within_its_blocks() -> None:
    assert sparkline([-1.0, 0.0, 0.5, 1.0, 7.0]) == "▁▁▅██"


def test_pages_join_and_percents_become_fractions() -> None:
    def page(token: str, minute: int) -> dict[str, Any]:
        point = {"interval": {"endTime": f"2026-03-01T12:0{minute}:00Z"}, "value": {"int64Value": "50"}}
        labels = {"job_id": "7", "task_name": "workerpool0-0"}
        return {
            "nextPageToken": token,
            "unit": "%",
            "timeSeries": [{"resource": {"labels": labels}, "points": [point]}],
        }

    pages = iter([page("more", 2), page("", 1)])
    query = MetricQuery(metric=MachineMetric.CPU, since=NOW - timedelta(days=1), until=NOW, job_id="7")
    (series,) = list_series(query, lambda _: next(pages))
    assert [(at.minute, value) for at, value in series.points] == [(1, 0.5), (2, 0.5)]
    assert ("aggregation.alignmentPeriod", "1440s") in query.parameters
