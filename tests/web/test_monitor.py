"""A run that is monitored: a long log in two looks, then what is new, and nothing once it is over."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.client.logged import Logged, now_s, progress
from tests.client.served import no_jobs, run_record, served_context
from trainmaster.client.clients import Clients
from trainmaster.client.find import read_run
from trainmaster.orchestrator.core.completion.steps import END_STEPS
from trainmaster.web.pages.run import monitor as module
from trainmaster.web.pages.run.monitor import Monitored, RunMonitor
from trainstack import logging

RUN = "watched"
JOB = {"name": "projects/1/locations/us-central1/customJobs/1", "state": "JOB_STATE_RUNNING"}


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    with (
        served_context(tmp_path) as served,
        logging.serve(tmp_path / "logging") as url,
        no_jobs() as vertex_url,
    ):
        local = replace(served.clients.context, logging_host=url, vertex_host=vertex_url)
        with Clients(local) as clients:
            yield Logged(replace(served, clients=clients), url)


def record(logged: Logged, state: str = "running", **changes: Any) -> None:
    job = JOB | {"start_time": "2026-03-01T12:00:05Z"}
    document = run_record(run_id=RUN, state=state, job=job) | changes
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    document["history"] = [
        *document["history"][:3],
        *([] if state == "running" else [{"state": state, "at": now}]),
    ]
    logged.served.write("ledger", f"runs/{RUN}.json", document)


def monitor(logged: Logged) -> RunMonitor:
    return RunMonitor(logged.served.clients, read_run(logged.served.clients, RUN))


def steps(found: Monitored) -> list[float]:
    return [x for chart in found.charts for series in chart.series for x, _ in series.points]


def test_a_long_log_is_shown_at_once_from_its_end_and_whole_with_the_next_look(
    logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_LINES", 3)
    record(logged)
    for step in range(1, 10):
        logged.write("1", step, "workerpool0-0", **progress(step))
    watched = monitor(logged)
    first = watched.look()
    assert steps(first) == [7, 8, 9]
    assert first.is_partial
    second = watched.look()
    assert steps(second) == list(range(1, 10))
    assert not second.is_partial
    logged.write("1", now_s(), "workerpool0-0", **progress(10))
    assert steps(watched.look()) == list(range(1, 11))


def test_replicas_that_have_not_logged_yet_are_starting(logged: Logged) -> None:
    record(logged)
    lanes = {lane.name: str(lane.state) for lane in monitor(logged).look().lanes}
    assert lanes["workerpool0-0"] == "starting"


def test_the_verdict_of_a_run_that_has_ended_is_awaited_and_then_nothing_is_read(logged: Logged) -> None:
    record(logged)
    watched = monitor(logged)
    watched.look()
    completion = {"steps_done": ["reason"]}
    record(logged, "succeeded", completion=completion)
    logged.write("1", now_s(), textPayload="Job completed successfully.")
    assert not watched.look().is_over
    verdict = {"promoted": True, "reason": "the first champion"}
    record(logged, "succeeded", completion={"steps_done": [*END_STEPS], "champion": verdict})
    found = watched.look()
    assert found.is_over
    assert found.run.record.completion is not None
    assert found.run.record.completion.champion is not None
    calls = logged.served.clients.storage_calls
    assert watched.look() is found
    assert logged.served.clients.storage_calls == calls
